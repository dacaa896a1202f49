#!/bin/sh
# Makes the Python environment that tests read our files and serve a bucket with, and prints where it is.
# `sh tests/venv.sh [FOLDER]`; default .venv beside Cargo.toml, or PACED_VENV.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
venv=${1:-${PACED_VENV:-$here/.venv}}
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
install() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >&2
}
install 'warcio==1.8.*'
install 'jsonschema==4.*'
# What moto's S3 needs, without what its other services do. Tests that need it look for it.
install 'moto==5.2.*' 'flask==3.*' 'flask-cors==6.*' 'PyYAML==6.*' 'py-partiql-parser==0.6.*' || {
    echo "tests/venv.sh: no moto; tests with a bucket are skipped" >&2
}
echo "$venv"
