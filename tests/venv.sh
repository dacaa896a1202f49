#!/bin/sh
# Makes the Python environment that tests read our files with, and prints where it is.
# `sh tests/venv.sh [FOLDER]`; default .venv beside Cargo.toml, or PACED_VENV.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
venv=${1:-${PACED_VENV:-$here/.venv}}
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'warcio==1.8.*' >&2
echo "$venv"
