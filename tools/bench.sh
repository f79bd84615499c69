#!/usr/bin/env bash
# Every benchmark, each row with its baseline beside it. `bench.sh speed` runs one group; QUICK=1
# takes a first look. Nothing else should run on the machine meanwhile. shellcheck
# source=tools/lib.sh
source "$(dirname "$0")/lib.sh"
cd "$ROOT"

tools/setup.sh build
have redis-server || die "the baseline is Debian's redis-server: make setup installs it"
export_bindgen_args
cargo build --release --locked -p entremet -p entremet-experiment
options=(--server "$CARGO_TARGET_DIR/release/entremet")
[[ -z ${QUICK:-} ]] || options+=(--quick)
[[ -z ${OUT:-} ]] || options+=(--out "$OUT")
if [[ $# -eq 0 ]]; then
    exec "$CARGO_TARGET_DIR/release/entremet-bench" "${options[@]}"
fi
for group in "$@"; do
    "$CARGO_TARGET_DIR/release/entremet-bench" "${options[@]}" --only "$group"
done
