"""What may keep a site's agent from running for months, looked at one by one; nothing is changed by looking."""

from __future__ import annotations

import asyncio
import errno
import importlib.metadata
import os
import platform
import shutil
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from packaging.requirements import Requirement

from roundelay.agents.agreement.disk import is_in_use
from roundelay.agents.agreement.folder import ACCEPTED, identity_for
from roundelay.agents.agreement.identity import CERTIFICATE_FILE, expiry, server_name, site_of
from roundelay.agents.agreement.names import host_and_port, relay_of
from roundelay.agents.agreement.permissions import open_to_others
from roundelay.agents.agreement.plan import Member, RingPlan
from roundelay.agents.agreement.ringfile import read_ring
from roundelay.agents.links.grpc_transport import dials
from roundelay.agents.links.ways import WayError, connect, proxy_for
from roundelay.agents.site.whereabouts import RUNNING

# What there must be: days until a certificate ends, bytes on the disk, seconds at most for a sync, seconds until a neighbour answers.
DAYS_LEFT, BYTES_FREE, SLOWEST_SYNC, PATIENCE = 30, 1_000_000_000, 0.1, 5.0
# A file may seem to be from the future by so much where disks and clocks differ a little.
AHEAD = timedelta(minutes=1)
SYNCS = 5


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was found, and what to do about it; nothing where all is well."""

    about: str
    sentence: str
    remedy: str = ""


def examine(folder: Path, listen: str = "") -> Iterator[Finding]:
    """Look at everything; `listen` is where the agent listens, where that is not the address of the ring file."""
    certificates = [folder / CERTIFICATE_FILE, *sorted(folder.glob(f"keys-*/{CERTIFICATE_FILE}"))]
    if not certificates[0].exists():
        raise ValueError(
            f"The folder {folder} has no {CERTIFICATE_FILE}: make an identity by roundelay ring init, or name the folder that has it."
        )
    own = certificates[-1].read_text(encoding="ascii")
    plan = latest_plan(folder)
    yield from _permissions(folder)
    yield from _clock(folder, own, plan)
    yield from _certificates(own, plan)
    yield from _disk(folder)
    yield from _versions()
    if plan is None:
        yield Finding("neighbours", "No ring file is accepted here yet, so there is no neighbour to look for.")
        return
    yield from _listening(folder, plan, plan.number_of(site_of(own)), listen)
    yield from _neighbours(folder, plan, plan.number_of(site_of(own)))


def latest_plan(folder: Path) -> RingPlan | None:
    """The plan that was accepted last."""
    paths = sorted((folder / ACCEPTED).glob("epoch-*.toml"), key=lambda path: path.stat().st_mtime_ns)
    return read_ring(paths[-1].read_bytes(), str(paths[-1])).plan if paths else None


def _permissions(folder: Path) -> Iterator[Finding]:
    found = open_to_others(folder)
    for sentence, command in found:
        yield Finding("permissions", sentence, f"Close it by {command}")
    if not found:
        yield Finding("permissions", "Nobody else on this machine can get at the folder or its keys.")


# ---------------------------------------------------------------- time


def _clock(folder: Path, own: str, plan: RingPlan | None) -> Iterator[Finding]:
    """This machine's clock against what has been written before: certificates, and files of its own."""
    now = datetime.now(UTC)
    remedy = "Set the clock, and let it be kept right by NTP (timedatectl set-ntp true)."
    good = True
    for name, certificate in (("this site", own), *_others(own, plan)):
        begin = x509.load_pem_x509_certificate(certificate.encode()).not_valid_before_utc
        if begin > now:
            good = False
            yield Finding(
                "clock",
                f"It is {now:%Y-%m-%d %H:%M} UTC by this machine, and the certificate of {name} is good from {begin:%Y-%m-%d %H:%M} on.",
                remedy + ("" if name == "this site" else f" If it is right here, it is {name}'s that is wrong."),
            )
    times = []
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # an agent that runs writes beside, and puts that in the place of the old one
            if path.is_file():
                times.append((path.stat().st_mtime, path))
    latest, newest = max(times)
    written = datetime.fromtimestamp(latest, UTC)
    if written > now + AHEAD:
        good = False
        yield Finding(
            "clock",
            f"{newest} was written at {written:%Y-%m-%d %H:%M} UTC, which by this machine's clock has not come yet.",
            remedy,
        )
    if good:
        yield Finding(
            "clock", f"It is {now:%Y-%m-%d %H:%M} UTC by this machine, which fits all certificates and files."
        )


def _certificates(own: str, plan: RingPlan | None) -> Iterator[Finding]:
    now = datetime.now(UTC)
    for name, certificate in (("this site", own), *_others(own, plan)):
        end = expiry(certificate)
        here = name == "this site"
        remedy = f"Make new keys by roundelay ring rekey{'' if here else f' at {name}'}, and let another member take them in by roundelay ring renew."
        if end <= now:
            yield Finding("certificates", f"The certificate of {name} expired on {end:%Y-%m-%d}.", remedy)
        elif end <= now + timedelta(days=DAYS_LEFT):
            days = (end - now).days
            yield Finding("certificates", f"The certificate of {name} is good for {days} days more.", remedy)
        else:
            yield Finding("certificates", f"The certificate of {name} is good until {end:%Y-%m-%d}.")


def _others(own: str, plan: RingPlan | None) -> list[tuple[str, str]]:
    members = () if plan is None else plan.members
    return [(member.name, member.certificate) for member in members if member.name != site_of(own)]


# ---------------------------------------------------------------- this machine


def _disk(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    yield Finding(
        "disk",
        f"There are {free / 1e9:,.1f} GB free for {folder}.",
        "" if free >= BYTES_FREE else f"Make room until {BYTES_FREE / 1e9:g} GB are free: a full disk stops the agent.",
    )
    try:
        seconds = _sync_seconds(folder)
    except OSError as error:
        yield Finding(
            "disk",
            f"Nothing can be written to {folder} ({error.strerror}).",
            "Let the user who runs the agent own the folder and all in it.",
        )
        return
    yield Finding(
        "disk",
        f"A write is safe on the disk after {1e3 * seconds:.1f} ms; every hand-over waits for that.",
        ""
        if seconds <= SLOWEST_SYNC
        else "Move the folder to a local disk: one on a network, or a busy one, slows the whole ring down.",
    )


def _sync_seconds(folder: Path) -> float:
    """How long a sync takes, on a file without a name, of which nothing is left."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(SYNCS):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def _versions() -> Iterator[Finding]:
    """What is installed against what this release asks for."""
    try:
        about = importlib.metadata.metadata("roundelay")
    except importlib.metadata.PackageNotFoundError:
        yield Finding(
            "versions",
            "Roundelay runs from its source and is not installed, so nobody checks its packages.",
            "Install it by pip install 'roundelay[ring]'.",
        )
        return
    asked = about["Requires-Python"]
    good = Requirement(f"python{asked}").specifier.contains(platform.python_version(), prereleases=True)
    yield Finding(
        "versions",
        f"Roundelay {about['Version']} runs on Python {platform.python_version()}.",
        "" if good else f"Install Python {asked}.",
    )
    wrong = False
    for requirement in map(Requirement, importlib.metadata.requires("roundelay") or ()):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": "ring"}):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            version = ""
        if not version or not requirement.specifier.contains(version, prereleases=True):
            wrong = True
            yield Finding(
                "versions",
                f"{requirement.name} is {version or 'not installed'}, and this release asks for {requirement.specifier}.",
                "Install what requirements/ring.lock names, or pip install --upgrade 'roundelay[ring]'.",
            )
    if not wrong:
        yield Finding("versions", "All packages that a ring needs are as this release asks for.")


# ---------------------------------------------------------------- links


def _listening(folder: Path, plan: RingPlan, me: int, listen: str) -> Iterator[Finding]:
    """Whether the address can be listened on; where the agent runs, whether it does."""
    address = listen or plan.members[me].address
    if all(dials(plan, me, peer) for peer in plan.neighbours[me]):
        yield Finding("ports", "This site dials all its neighbours, and listens on no port.")
        return
    if relay := relay_of(address):
        trouble = _on_the_way(relay, "The relay")
        yield Finding(
            "ports",
            trouble or f"This site listens on no port: it is met at the relay {relay}, which answers.",
            f"{_WAYS} of the relay." if trouble else "",
        )
        return
    host, port = host_and_port(address)
    if is_in_use(folder / "runs" / plan.run / RUNNING):
        trouble = _reach(host, port)
        yield Finding(
            "ports",
            f"The agent runs, and its address {address} {f'can not be reached from here: {trouble}' if trouble else 'answers'}.",
            "Start the agent with --listen and the address of this machine behind that one, or the same one here."
            if trouble
            else "",
        )
        return
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        socket.create_server((host, port), family=family).close()
    except (OSError, UnicodeError) as error:
        taken = getattr(error, "errno", None) == errno.EADDRINUSE
        yield Finding(
            "ports",
            f"The address {address} can't be listened on: {getattr(error, 'strerror', None) or error}.",
            "Free the port (ss -ltnp shows who has it), or start the agent with another one by --listen."
            if taken
            else "Start the agent with --listen and an address of this machine, such as 0.0.0.0 with the port to which the other one leads.",
        )
        return
    yield Finding("ports", f"The address {address} can be listened on.")


def _neighbours(folder: Path, plan: RingPlan, me: int) -> Iterator[Finding]:
    for peer in sorted(plan.neighbours[me]):
        member = plan.members[peer]
        if not dials(plan, me, peer):
            yield Finding("neighbours", f"{member.name} dials this site, so that from here it can't be tried.")
            continue
        relay = relay_of(member.address)
        if relay or proxy_for(member.address):
            yield _by_another(member, relay)
            continue
        trouble = _reach(*host_and_port(member.address))
        if trouble:
            yield Finding(
                "neighbours",
                f"{member.name} does not answer at {member.address}: {trouble}.",
                f"Ask its operator whether the agent runs there; then look for a firewall on the way, and whether {member.address} is right.",
            )
        elif not _shakes_hands(folder, plan, member):
            yield Finding(
                "neighbours",
                f"Whoever answers at {member.address} is not {member.name} by its certificate, or does not know this site's.",
                f"Compare the digest of the ring file with {member.name} (roundelay ring show), and who listens at that address.",
            )
        else:
            yield Finding(
                "neighbours", f"{member.name} answers at {member.address}, with its certificate, and takes this site's."
            )


_WAYS = "Look at HTTPS_PROXY and NO_PROXY, for a firewall on the way, and ask the operator"


def _by_another(member: Member, relay: str) -> Finding:
    """A neighbour to which the way leads by a proxy or a relay. Its certificate is left to the agent, in whose place nobody shall be met."""
    trouble = _on_the_way(relay or member.address, "The relay" if relay else member.name)
    if trouble:
        return Finding("neighbours", trouble, f"{_WAYS} of {'the relay' if relay else member.name}.")
    where = f"is met at the relay {relay}, which answers" if relay else f"answers at {member.address} by the proxy"
    return Finding("neighbours", f"{member.name} {where}; its certificate is not looked at from here.")


def _on_the_way(address: str, whose: str) -> str:
    """Why an address can't be reached as the agent does it, in a sentence; empty where it can."""

    async def there() -> None:
        (await connect(address, whose)).writer.close()

    try:
        asyncio.run(there())
    except WayError as error:
        return str(error)
    return ""


def _reach(host: str, port: int) -> str:
    """Why a port can't be reached; empty where it can."""
    try:
        socket.create_connection((host, port), PATIENCE).close()
    except TimeoutError:
        return f"there is no answer within {PATIENCE:g} seconds"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    except UnicodeError:  # of a part that is too long for a name
        return "it has no name that can be looked up"
    return ""


def _shakes_hands(folder: Path, plan: RingPlan, member: Member) -> bool:
    """Whether a link could be opened as the agent does it; none is."""
    import grpc  # after the links, which say how loud it may be

    identity = identity_for(folder, plan)
    credentials = grpc.ssl_channel_credentials(member.certificate.encode(), identity.key, identity.certificate.encode())
    options = [("grpc.ssl_target_name_override", server_name(member.certificate)), ("grpc.enable_http_proxy", 0)]
    with grpc.secure_channel(member.address, credentials, options=options) as channel:
        try:
            grpc.channel_ready_future(channel).result(PATIENCE)
        except grpc.FutureTimeoutError:
            return False
    return True
