"""What an audit of a lock file has found, in words: `audited.py LOCK REPORT WORDS`, of pip-audit's JSON and its stderr."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def verdict(lock: str, report: str, words: str) -> tuple[int, str]:
    """The exit code and what is said."""
    try:
        packages = json.loads(report)["dependencies"]
    except (ValueError, KeyError):
        last = (words.strip().splitlines() or ["pip-audit said nothing"])[-1]
        return 0, f"NOT AUDITED: {lock}, since the database of vulnerabilities can't be asked from here ({last[:200]})."
    holes = [
        f"{one['name']} {one['version']} has {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no release yet'}"
        for one in packages
        for hole in one.get("vulns", ())
    ]
    if holes:
        return 1, f"{lock}: {'; '.join(holes)}. Raise the bounds in pyproject.toml, then run scripts/lock.sh."
    unknown = [one["name"] for one in packages if "skip_reason" in one]
    if unknown:
        return 0, (
            f"NOT AUDITED: {len(unknown)} of the {len(packages)} packages of {lock}, which the database does not know or can't be asked "
            f"about from here: {', '.join(unknown)}."
        )
    return 0, f"{lock}: no hole is known in its {len(packages)} packages."


if __name__ == "__main__":
    name, found, said = sys.argv[1:4]
    code, sentence = verdict(name, Path(found).read_text(), Path(said).read_text())
    print(sentence)
    sys.exit(code)
