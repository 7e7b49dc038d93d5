"""What every answer says to the browser: show this page and its own files, keep nothing, tell nobody."""

from __future__ import annotations

from aiohttp import web

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
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Server": "roundelay",
}


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Called for every answer before it goes out, refusals too."""
    response.headers.update(HEADERS)
