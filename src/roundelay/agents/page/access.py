"""Who may see the page: only this machine, by an access token; and what every answer tells the browser to keep to itself."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web

HOSTS = ("127.0.0.1", "localhost")
HTTP = 80

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",  # the empty icon, so that the browser does not ask for one
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
# The report is a document that needs nothing beside it, and runs nothing.
REPORT = "/report.html"
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Server": "roundelay",
}


@dataclass(frozen=True)
class Access:
    """The port that the page is served on, and the token that every request must show."""

    port: int
    token: str

    @property
    def address(self) -> str:
        """Where to find the page, token included."""
        return f"http://{HOSTS[0]}:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers give the cookies of one port to all others, so it names the port."""
        return f"roundelay-{self.port}"

    def refusal(self, request: web.Request) -> str:
        """Why a request is refused, as a sentence; empty where it is not."""
        if not self._is_host(request.headers.getall("Host", [])):
            # A foreign name that leads here is how another page would read this one: DNS rebinding.
            return f"This page answers only as {HOSTS[0]}:{self.port} or {HOSTS[1]}:{self.port}: use one of these addresses."
        shown = self._shown(request)
        if shown is None:
            return "This page asks for its access token: open the whole address that the agent gave when it started."
        if not secrets.compare_digest(_bytes(shown), _bytes(self.token)):
            return "The access token is not the one of this agent: open the address that it gave when it last started."
        return ""

    def remember(self, response: web.StreamResponse) -> None:
        """Let the browser keep the token where no script and no other site can use it."""
        response.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict", path="/")

    def _is_host(self, given: list[str]) -> bool:
        right = {f"{host}:{self.port}" for host in HOSTS} | ({*HOSTS} if self.port == HTTP else set())
        return len(given) == 1 and given[0].lower() in right

    def _shown(self, request: web.Request) -> str | None:
        """The token that a request shows: in its address, in a header as Prometheus does it, or in the cookie."""
        if "token" in request.query:
            return request.query["token"]
        scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
        return credentials.strip() if scheme.lower() == "bearer" else request.cookies.get(self.cookie)


def _bytes(text: str) -> bytes:
    """For a comparison in constant time; whatever was sent can be encoded."""
    return text.encode("utf-8", "surrogatepass")


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Called for every answer before it goes out, refusals too."""
    response.headers.update(HEADERS)
    if request.path == REPORT and response.status == HTTPStatus.OK:
        response.headers["Content-Security-Policy"] = REPORT_POLICY
