#!/usr/bin/env bash
# Runs `make quick`'s tests on every Python from 3.11 to 3.14 that this machine has, each in an environment of its own, and says which
# are absent. `make versions PYTHONS="3.13 3.14"` takes some alone; what stands after -- goes to pytest.
set -uo pipefail
cd "$(dirname "$0")/.."

pythons=(3.11 3.12 3.13 3.14)
if [ $# -gt 0 ] && [ "$1" != -- ]; then
    pythons=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        pythons+=("$1")
        shift
    done
fi
[ "${1:-}" = -- ] && shift
unset PYTHONDONTWRITEBYTECODE # the bytecode of an environment is kept in it
log=$(mktemp)
trap 'rm -f "$log"' EXIT

find_python() { # the first that is this version: a name on the path may be a shim that knows no such Python
    local candidate
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python /usr/local/bin/python"$1" /opt/python*/bin/python"$1"; do
        if "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
            "$candidate" -c "import sys; print(sys.executable)"
            return
        fi
    done
}

verdicts=()
failed=0
for version in "${pythons[@]}"; do
    python=$(find_python "$version")
    if [ -z "$python" ]; then
        verdicts+=("Python $version: absent from this machine, so nothing was run.")
        continue
    fi
    home=.venv/versions/$version
    if [ ! "$home/installed" -nt pyproject.toml ]; then
        echo "Python $version: an environment of its own, in $home."
        if ! { "$python" -m venv "$home" && "$home/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check \
            --prefer-binary --editable ".[dev]"; } >"$log" 2>&1; then
            tail -n 5 "$log"
            verdicts+=("Python $version: what the tests need can't be installed.")
            failed=1
            continue
        fi
        touch "$home/installed"
    fi
    # Compiled code is of one Python, and so is the bytecode.
    if ROUNDELAY_CACHE=$PWD/$home/compiled PYTHONPYCACHEPREFIX=$PWD/$home/bytecode "$home/bin/pytest" -n "$(nproc)" --dist loadfile --quick -q "$@" 2>&1 |
        tee "$log"; then
        word=passed
    else
        word=FAILED
        failed=1
    fi
    verdicts+=("$("$home/bin/python" -c 'import platform; print("Python", platform.python_version())'): $word, $(tail -n 1 "$log" | tr -d =)")
done
printf '%s\n' "" "${verdicts[@]}"
exit $failed
