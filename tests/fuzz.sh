#!/bin/sh
# Fuzzes every target of fuzz/ for SECONDS (default 60); fails on a find and says where its input is.
# `sh tests/fuzz.sh [SECONDS] [TARGET…]`
#
# With a nightly toolchain and cargo-fuzz the fuzzer is guided by coverage (libFuzzer, with address sanitizer), as many
# targets side by side as there are cores. Without them, or with PACED_FUZZ=plain, the same targets meet random mutations of
# the same seeds, on any toolchain, all side by side. PACED_FUZZ_JOBS says how many are.
set -eu
cd "$(dirname -- "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
targets=${*:-site_file robots page warc_tail headers canonical_url structured robots_links redis_answers foreign_warc}
corpora=${PACED_CORPORA:-../shared/corpora}
[ -d "$corpora" ] || echo "tests/fuzz.sh: no $corpora; only the seeds of fuzz/seeds are used" >&2
# The page store is made and cut thousands of times a second.
[ ! -w /dev/shm ] || { TMPDIR=$(mktemp -d /dev/shm/paced-fuzz.XXXXXX); export TMPDIR; trap 'rm -rf "$TMPDIR"' EXIT; }

# The folders that hold seeds of a target, besides its own.
more_seeds() {
    case $1 in
    site_file) echo sites tests/fixtures/site_files ;;
    robots) echo "$corpora/robots/real" ;;
    page) echo "$corpora/html/metascraper-shopping" "$corpora/encodings/chardet" "$corpora/html/extruct-samples" ;;
    warc_tail | foreign_warc) echo "$corpora/warc/files" ;;
    headers) echo "$corpora/http/compressed" ;;
    structured) echo "$corpora/html/metascraper-shopping" "$corpora/html/extruct-samples" ;;
    canonical_url | robots_links | redis_answers) ;;
    esac
}

present() {
    for folder in $(more_seeds "$1"); do
        [ ! -d "$folder" ] || printf '%s\n' "$folder"
    done
}

guided() {
    [ "${PACED_FUZZ:-}" != plain ] || return 1
    cargo +nightly fuzz --version >/dev/null 2>&1 && return 0
    echo "tests/fuzz.sh: NOT GUIDED BY COVERAGE: there is no nightly toolchain with cargo-fuzz; random mutations instead." >&2
    echo "tests/fuzz.sh: rustup toolchain install nightly && cargo install cargo-fuzz --locked" >&2
    return 1
}

# One line a target to stdout, what it said to fuzz/artifacts/TARGET.log.
run_guided() {
    mkdir -p "fuzz/corpus/$1" "fuzz/artifacts/$1"
    # The bundled SQLite defines a name twice; a thread that is just ending isn't a leak.
    # shellcheck disable=SC2046 # folders without spaces
    ASAN_OPTIONS=detect_odr_violation=0 "$built/$1" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=120 \
        -max_len=16384 -detect_leaks=0 -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$1/" \
        "fuzz/corpus/$1" "fuzz/seeds/$1" $(present "$1") >"fuzz/artifacts/$1.log" 2>&1
}

run_plain() {
    folders=$(present "$1" | tr '\n' ':')
    case $1 in
    site_file) test=any_bytes_are_a_site ;;
    robots) test=any_bytes_are_a_robots_txt ;;
    page) test=any_bytes_are_a_page ;;
    warc_tail) test=any_bytes_may_end_a_segment ;;
    headers) test=any_bytes_are_header_fields ;;
    canonical_url) test=any_bytes_are_no_url ;;
    structured) test=any_product_of_any_size ;;
    robots_links) test=any_rules_and_any_links ;;
    redis_answers) test=any_answer_of_a_redis ;;
    foreign_warc) test=any_bytes_are_a_warc_file ;;
    *) echo "tests/fuzz.sh: no target $1" >&2; return 1 ;;
    esac
    mkdir -p fuzz/artifacts
    PACED_FUZZ_SECONDS=$seconds PACED_FUZZ_CORPUS=$folders \
        cargo test --locked --quiet --test fuzz -- --nocapture "$test" >"fuzz/artifacts/$1.log" 2>&1
}

if guided; then
    how=run_guided jobs=${PACED_FUZZ_JOBS:-$(nproc 2>/dev/null || echo 2)}
    cargo +nightly fuzz build --fuzz-dir fuzz
    host=$(rustc +nightly -vV | sed -n 's/^host: //p')
    built=fuzz/target/$host/release
else
    how=run_plain jobs=${PACED_FUZZ_JOBS:-99}
    cargo test --locked --quiet --no-run --test fuzz
fi

failed=
# These targets at once: a shell waits for one round before it starts the next.
round() {
    pids=
    for target in "$@"; do
        "$how" "$target" &
        pids="$pids $target:$!"
    done
    for one in $pids; do
        target=${one%%:*}
        if wait "${one##*:}"; then
            summary=$(grep -E 'number_of_executed_units|mutations, nothing found' "fuzz/artifacts/$target.log" || true)
            echo "$target: nothing found in $seconds s (${summary##*: })"
        else
            failed="$failed $target"
            echo "$target: FAILED; what fuzz/artifacts/$target.log has of it, and its end:" >&2
            grep -A 2 'panicked at' "fuzz/artifacts/$target.log" >&2 || true
            tail -n 40 "fuzz/artifacts/$target.log" >&2
        fi
    done
}

batch=
count=0
for target in $targets; do
    batch="$batch $target"
    count=$((count + 1))
    if [ "$count" -ge "$jobs" ]; then
        # shellcheck disable=SC2086 # names without spaces
        round $batch
        batch= count=0
    fi
done
# shellcheck disable=SC2086
[ -z "$batch" ] || round $batch
[ -z "$failed" ] || { echo "tests/fuzz.sh: found something in:$failed; the inputs are in fuzz/artifacts" >&2; exit 1; }
