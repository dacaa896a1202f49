#!/bin/sh
# Runs all tests. What they need beside Rust is installed where that is allowed, else it is said how.
set -eu
cd "$(dirname -- "$0")/.."

# Debian package $2 brings the program $1, which the tests use to $3.
need() {
    command -v "$1" >/dev/null 2>&1 && return 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -qq >/dev/null 2>&1 || true
        apt-get install -y -qq "$2" >/dev/null 2>&1 && return 0
    fi
    echo "tests/all.sh: $1 is missing; the tests use it to $3. Install it: apt-get install $2" >&2
    [ -z "${CI:-}" ] || exit 1
}

# The tests start servers of their own, on other ports than Redis's own: a service that came with the package is none of theirs.
need_redis() {
    command -v redis-server >/dev/null 2>&1 && return 0
    need redis-server redis-server "prove the shared frontier against real servers"
    command -v service >/dev/null 2>&1 && service redis-server stop >/dev/null 2>&1 || true
}

need zstd zstd "unpack saved shops"
need_redis
need python3 python3-venv "read our archives with another program"
PACED_VENV=$(sh tests/venv.sh) || {
    echo "tests/all.sh: no Python environment with warcio; tests that compare with it are skipped" >&2
    [ -z "${CI:-}" ] || exit 1
    PACED_VENV=
}
export PACED_VENV

cargo test --locked --no-run
# The manual's lines of shell wait most of the time: for some minutes they run beside other tests. Those of pace come later:
# they measure time at a server, and nothing else should keep the machine busy meanwhile.
manual=$(mktemp)
setsid -w cargo test --locked --test docs each_line_of_shell >"$manual" 2>&1 &
reader=$!
trap 'kill -- "-$reader" 2>/dev/null || true; rm -f "$manual"' EXIT
trap 'exit 1' INT TERM HUP
cargo test --locked -- --skip each_line_of_shell
wait "$reader" || { cat "$manual"; exit 1; }
trap 'rm -f "$manual"' EXIT
cat "$manual"
# Pages in a bucket. What both builds share is built once, and nothing of the rest is so slow that it must be optimized.
CARGO_PROFILE_DEV_OPT_LEVEL=0 cargo test --locked --features s3 --lib --test s3 --test licences
