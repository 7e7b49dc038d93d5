#!/usr/bin/env bash
# Builds the wheel and the sdist of the last commit into dist/: twice, from two clones, at other paths, times and umasks, and only
# what has the same bytes both times is kept. The files inside have the time of the commit.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(realpath --no-symlinks "${PYTHON:-.venv/bin/python}")
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build() { # in a clone of its own, whose path is as long as it is told to be
    mkdir -p "$work/$1"
    git clone --quiet . "$work/$1/clone"
    (cd "$work/$1/clone" && "$python" -m hatchling build --directory "$work/$1/dist")
}
(umask 022 && build first)
sleep 2 # a file's time of change has a grain of up to two seconds
(umask 077 && build second/somewhere/else)
(cd "$work/first/dist" && sha256sum -- *) >"$work/digests"
(cd "$work/second/somewhere/else/dist" && sha256sum --check --quiet "$work/digests") || {
    echo "Two builds of one commit differ: nothing was put into dist/." >&2
    exit 1
}
rm -rf dist
mkdir dist
cp "$work"/first/dist/* dist/
cat "$work/digests"
