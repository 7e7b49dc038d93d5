#!/usr/bin/env bash
# Asks the public database of vulnerabilities about every package of requirements/*.lock. What is known to have a hole fails; where the
# database can't be asked, that is said, and nothing is proven: pip-audit by itself calls packages clean that it could not look up.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
report=$(mktemp)
words=$(mktemp)
trap 'rm -f "$report" "$words"' EXIT
for lock in requirements/*.lock; do
    : >"$report" # that of the lock before says nothing of this one
    "$python" -m pip_audit --requirement "$lock" --require-hashes --disable-pip --progress-spinner off --timeout 30 \
        --format json --output "$report" 2>"$words" || true
    "$python" scripts/audited.py "$lock" "$report" "$words"
done
