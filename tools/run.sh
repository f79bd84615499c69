#!/usr/bin/env bash
# Starts the demo server in the foreground; builds it first if sources are newer than the binary.
#   LISTEN, ADMIN   addresses, when 127.0.0.1:6380 and 127.0.0.1:9380 are taken     DATA   folder (in the build cache)
# shellcheck source=tools/lib.sh
source "$(dirname "$0")/lib.sh"
cd "$ROOT"

binary=$CARGO_TARGET_DIR/release/entremet
# From a warm build the first reply must be there in two seconds, so cargo is only asked when there
# is something to build.
if [[ ! -x $binary ]] || [[ -n $(find crates Cargo.toml Cargo.lock .cargo -newer "$binary" -type f -print -quit) ]]; then
    tools/setup.sh build
    export_bindgen_args
    say "building (RocksDB takes about 16 minutes the first time)"
    cargo build --release --locked -p entremet
fi

listen=${LISTEN:-127.0.0.1:6380}
admin=${ADMIN:-127.0.0.1:9380}
data=${DATA:-$BUILD/demo-data}
port=${listen##*:}
mkdir -p "$data"
cat <<TEXT
>> Two tenants share this server: web (weight 10) and batch (weight 1). Try, in another terminal:

   redis-cli -p $port --user web --pass web-demo SET greeting hello
   redis-cli -p $port --user batch --pass batch-demo GET greeting        nothing: a tenant sees only its own
   redis-cli -p $port --user operator --pass operator-demo ENTREMET TENANT LIST
   redis-benchmark -p $port --user batch -a batch-demo -t set -n 3000000 -P 16 -q      a noisy neighbour ...
   redis-cli -p $port --user web --pass web-demo --latency                             ... that web hardly notices
   curl http://$admin/metrics

   Dashboard: http://$admin/

>> The program is $binary. Data is in $data. Ctrl-C ends the server.
TEXT
exec "$binary" serve --config tools/demo.toml --listen "$listen" --admin "$admin" --data "$data"
