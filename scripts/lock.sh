#!/usr/bin/env bash
# Writes anew what the container and a production site install: every package with its version and the hashes of its files.
# It needs uv (pip install uv). Look at what changes, and at what `make audit` says of it, before it is committed.
set -euo pipefail
cd "$(dirname "$0")/.."

lock() { # the inputs come from stdin or are named; packages are for any platform and any Python that the project runs on
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --upgrade \
        --output-file "requirements/$1.lock" "${@:2}"
    sed -i "1i # $(wc -l <<<"$(grep '==' "requirements/$1.lock")") packages, written by scripts/lock.sh: do not edit." "requirements/$1.lock"
}
lock ring pyproject.toml --extra ring --extra parquet
python3 - <<'PYTHON' | lock build -
import tomllib

with open("pyproject.toml", "rb") as file:
    print("\n".join(tomllib.load(file)["build-system"]["requires"]))
PYTHON
