"""How a site may be called, and where it can be dialled."""

from __future__ import annotations

import re
from collections.abc import Iterable

from roundelay.tables import in_short

LONGEST_NAME = 40
LONGEST_ADDRESS = 270
RELAY = "relay://"

# Plain letters only: a certificate holds 64 bytes of a name, and letters that look alike would mislead.
_NAME = re.compile(r"[A-Za-z0-9._-](?:[A-Za-z0-9._ -]*[A-Za-z0-9._-])?")
_ADDRESS = re.compile(r"(?:relay://)?(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


def check_site_name(name: str) -> None:
    """Refuse a name that is too long, or has other signs than letters, digits, - _ . and spaces inside."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise ValueError(
            f"A site can't be called {in_short(name)}: use 1 to {LONGEST_NAME} of the letters a to z and A to Z, "
            "digits, -, _ and ., with spaces between them."
        )


# Letters that are taken for others, in one form.
_ALIKE = str.maketrans("01i5", "olls", "-_. ")


def as_read(name: str) -> str:
    """A name as somebody reads it who looks once: two that are alike in this would be taken for one site."""
    return name.lower().translate(_ALIKE).replace("rn", "m").replace("vv", "w")


def refuse_alike(names: Iterable[str]) -> None:
    """Refuse two sites whose names are taken for one another."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(as_read(name), name)
        if other != name:
            raise ValueError(
                f"{other} and {name} are called so nearly the same that one is taken for the other: let one of them make an identity with "
                "another name."
            )


def check_address(address: str) -> None:
    """Refuse what is no address; a site without one dials and is never dialled, and relay://host:port is met at a relay."""
    if address == "":
        return
    fits = _ADDRESS.fullmatch(address) if isinstance(address, str) and len(address) <= LONGEST_ADDRESS else None
    if fits is None or not 0 < int(fits.group(1)) < 2**16:
        raise ValueError(
            f"The address {in_short(address)} can't be dialled: write host:port, for example oslo.example.org:7443, "
            "or relay://host:port of a relay, or leave it empty for a site that only dials others."
        )


def relay_of(address: str) -> str:
    """The host:port of the relay at which a site is met; empty where it is dialled itself."""
    return address.removeprefix(RELAY) if address.startswith(RELAY) else ""


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of host:port, an address of IPv6 without its brackets."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)
