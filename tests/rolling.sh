#!/bin/sh
# A rolling upgrade with two real builds (N9): what worked on a frontier of an earlier schema is ended, process by process, and this
# build goes on with it. By hand: `sh tests/rolling.sh [COMMIT]`; without one, the newest commit whose schema on a Redis is lower.
#
# It needs git, python3 and redis-server. The earlier build is made below target/rolling, from an export of its commit. On a file and
# on a Redis, a shop on loopback must see each page once, and no two starts closer than the interval less its grace.
set -eu
cd "$(dirname -- "$0")/.."
check=src/frontier/redis/server_check.rs tables=src/frontier/sqlite/schema.rs
pages=90 interval=500 grace=50 # ms

fail() {
    echo "tests/rolling.sh: $*" >&2
    exit 1
}

for program in git python3 redis-server redis-cli cargo; do
    command -v "$program" >/dev/null 2>&1 || fail "$program is missing"
done

schema_in() {
    sed -n 's/^const SCHEMA: i64 = \([0-9]*\);.*/\1/p'
}

today=$(schema_in <$check)
commit=${1:-$(git log -1 --format=%H -S"const SCHEMA: i64 = $today;" -- $check)~1}
commit=$(git rev-parse --verify "$commit^{commit}")
before=$(git show "$commit:$check" | schema_in)
[ "$before" -lt "$today" ] || fail "the schema of $commit is $before, that of this build is $today: name an earlier commit"

below=$PWD/target/rolling
rm -rf "$below/source"
mkdir -p "$below/source"
git archive "$commit" | tar -x -C "$below/source"
(cd "$below/source" && CARGO_TARGET_DIR="$below/build" cargo build --locked --bin paced)
cargo build --locked --bin paced
old=$below/build/debug/paced new=${CARGO_TARGET_DIR:-target}/debug/paced

here=$(mktemp -d "${TMPDIR:-/tmp}/paced-rolling.XXXXXX")
started=""
clean() {
    for id in $started; do kill "$id" 2>/dev/null || true; done
    wait
    rm -rf "$here"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP

# A shop that notes each arrival: ms, path.
cat >"$here/shop.py" <<'END'
import http.server, sys, time

class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        arrivals.write(f"{time.monotonic() * 1000:.1f} {self.path}\n")
        time.sleep(0.3)
        body = f"<h1>{self.path}</h1>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

arrivals = open(sys.argv[1], "w", buffering=1)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
print(server.server_address[1], flush=True)
server.serve_forever()
END

# until SECONDS WHAT COMMAND…: waits until the command succeeds.
until_is() {
    left=$(($1 * 10)) what=$2
    shift 2
    until "$@"; do
        left=$((left - 1))
        [ $left -gt 0 ] || fail "waited in vain for $what"
        sleep 0.1
    done
}

asked() {
    [ "$(wc -l <"$data/arrivals")" -ge "$1" ]
}

# work BUILD NAME [OPTION…]: starts a worker; its id is $worker, its log $data/NAME.log.
work() {
    build=$1 name=$2
    shift 2
    "$build" --data "$data/data" --frontier "$frontier" work --name "$name" "$@" >/dev/null 2>"$data/$name.log" &
    worker=$!
    started="$started $worker"
}

# refused BUILD NAME TEXT…: a worker of that build must end with 1 and say all of these.
refused() {
    work "$1" "$2"
    code=0
    wait "$worker" || code=$?
    [ $code = 1 ] || fail "$2 ended with $code: $(cat "$data/$2.log")"
    log=$data/$2.log
    shift 2
    for text; do
        grep -q -e "$text" "$log" || fail "no '$text' in: $(cat "$log")"
    done
}

# ended ID NAME: a worker must have ended well.
ended() {
    code=0
    wait "$1" || code=$?
    [ $code = 0 ] || fail "$2 ended with $code: $(cat "$data/$2.log")"
}

# upgraded WHERE URL: an upgrade of the frontier there.
upgraded() {
    data=$here/$1 frontier=$2
    mkdir -p "$data/data"
    python3 "$here/shop.py" "$data/arrivals" >"$data/port" &
    started="$started $!"
    until_is 20 "the shop" test -s "$data/port"
    port=$(cat "$data/port")
    {
        printf 'name = "shop"\nseeds = [\n'
        for number in $(seq $pages); do printf '  "http://127.0.0.1:%s/p/%s",\n' "$port" "$number"; done
        printf ']\n[pace]\ninterval = "%sms"\nparallel = 4\ncontact = "test@example.com"\nrobots = "ignore"\n' $interval
        printf '[scope]\n[fetch]\nallow_private = true\n[[page]]\nname = "page"\nmatch = "/p/**"\nitem = true\nkey = "url"\n'
        printf '[page.fields]\ntitle = "h1"\n'
    } >"$data/shop.toml"

    "$old" --data "$data/data" --frontier "$frontier" seed "$data/shop.toml" >/dev/null 2>&1
    work "$old" old-1 && first=$worker
    work "$old" old-2 && second=$worker
    until_is 60 "the old build's pages" asked 15
    refused "$new" early-1 "a process of an older paced (schema" "old-[12]"
    kill -TERM "$first" || fail "old-1 is gone: $(cat "$data/old-1.log")"
    ended "$first" old-1
    before_second=$(wc -l <"$data/arrivals")
    refused "$new" early-2 "a process of an older paced (schema" "old-2"
    until_is 60 "pages of the old build's other worker" asked $((before_second + 10))
    kill -TERM "$second" || fail "old-2 is gone: $(cat "$data/old-2.log")"
    ended "$second" old-2
    stood=$(wc -l <"$data/arrivals")
    [ "$stood" -lt $pages ] || fail "nothing is left for this build"

    work "$new" new-1 --until-empty && first=$worker
    work "$new" new-2 --until-empty && second=$worker
    until_is 60 "this build's pages" asked $((stood + 5))
    refused "$old" late "written by a newer paced (schema"
    ended "$first" new-1
    ended "$second" new-2
    judge
}

# Each page came once, none was sent too early, and each is an item.
judge() {
    twice=$(cut -d' ' -f2 "$data/arrivals" | sort | uniq -d)
    [ -z "$twice" ] || fail "asked for twice: $twice"
    count=$(wc -l <"$data/arrivals")
    [ "$count" = $pages ] || fail "$count of $pages pages were asked for"
    "$new" --data "$data/data" --frontier "$frontier" audit shop --json >"$data/audit"
    grep -q "\"starts\":$pages,.*\"early\":0," "$data/audit" || fail "the audit: $(cat "$data/audit")"
    items=$(cat "$data"/data/items/*.jsonl | grep -o '"url":"[^"]*"' | sort -u | wc -l)
    [ "$items" = $pages ] || fail "$items of $pages pages are items"
    by_old=$(cat "$data"/data/items/shop-old-*.jsonl | wc -l)
}

# How many starts came too early at the shop, and the shortest time between two, in ms.
gaps() {
    sort -n "$data/arrivals" | awk -v least=$((interval - grace)) '
        NR > 1 && $1 - last < least { early++ }
        NR > 1 && (min == "" || $1 - last < min) { min = $1 - last }
        { last = $1 }
        END { print early + 0, min }'
}

# in_three_tries NAME URL SCHEMAS: upgrades, in a place of its own each time, where TRY is in the URL. The shop stamps what it reads,
# late on a busy machine: one start may be early there. What the senders stamped is never forgiven.
in_three_tries() {
    for try in 1 2 3; do
        upgraded "$1-$try" "$(echo "$2" | sed "s/TRY/$try/")"
        gaps=$(gaps)
        early=${gaps% *} shortest=${gaps#* }
        told="$1, schema $3: $by_old pages by the earlier build, $((pages - by_old)) by this one; shortest gap $shortest ms of $interval"
        if [ "$early" -le 1 ]; then
            echo "$told"
            return
        fi
        echo "try $try of 3: $early early at the shop; $told; load $(cut -d' ' -f1-3 /proc/loadavg 2>/dev/null || true)" >&2
    done
    fail "starts came too early at the shop, three times"
}

mkdir -p "$here/redis"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$here/redis" >/dev/null &
started="$started $!"
server=$port
until_is 20 "the Redis" sh -c "redis-cli -p $server ping >/dev/null 2>&1"

in_three_tries on-redis "redis://127.0.0.1:$server/TRY" "$before to $today"
schema=$(redis-cli -n "$try" -p "$server" GET '{paced:0}:schema')
[ "${schema%% *}" = "$today" ] || fail "the Redis has schema $schema"
versions=$(cat "$below/source/$tables" $tables | sed -n 's/.*const VERSION: i64 = \([0-9]*\);.*/\1/p' | paste -sd " ")
in_three_tries on-a-file "sqlite:$here/on-a-file-TRY/data/frontier.db" "${versions% *} to ${versions#* }"
