"""How many files and connections this process may have open, and how many of those others may take."""

from __future__ import annotations

try:
    import resource
except ImportError:  # not on Windows, where connections count against nothing
    resource = None  # type: ignore[assignment]

# More than any agent needs, and what a careful system grants.
ENOUGH = 4096
# More connections at once than so many are no use to anybody.
MOST_CONNECTIONS = 1000


def allow_enough() -> None:
    """Raise this process's own limit as far as it needs and may."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(ENOUGH, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """How many connections of others may be open at once: half of all is kept for journals, logs and our own dialling."""
    if resource is None:
        return MOST_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft // 2)
