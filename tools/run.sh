#!/usr/bin/env bash
# `make run`: sets up what is missing, builds if needed, and starts the server with two demo tenants.
# shellcheck source=tools/lib.sh
source "$(dirname "$0")/lib.sh"
cd "$ROOT"
export_bindgen_args

program=$CARGO_TARGET_DIR/release/entremet
"$ROOT/tools/setup.sh" build
[[ -x $program ]] || say "the first build compiles RocksDB: about a quarter of an hour on two cores"
cargo build --release --locked --quiet -p entremet

cat <<TEXT

Two demo tenants share this server: "web" (weight 10) and "batch" (weight 1). In another terminal:

  redis-cli -p 6380 --user web --pass web-demo set greeting hello
  redis-cli -p 6380 --user web --pass web-demo get greeting
  redis-cli -p 6380 --user batch --pass batch-demo get greeting     (nil: tenants see nothing of each other)
  redis-cli -p 6380 --user operator --pass operator-demo entremet tenant list
  curl http://127.0.0.1:9380/metrics

Data is kept in ${DEMO_DATA:=$ROOT/data}. Ctrl-C ends the server.

TEXT
exec "$program" serve --config "$ROOT/tools/demo.toml" --data "$DEMO_DATA"
