#!/usr/bin/env bash
# `make bench`: every benchmark with its baseline beside it. Words narrow it to groups or rows whose name contains
# them; BENCH_ARGS holds further options (`--quick`, `--repeats 9`, `--out DIR`; `--help` lists them).
# shellcheck source=tools/lib.sh
source "$(dirname "$0")/lib.sh"
cd "$ROOT"
export_bindgen_args

"$ROOT/tools/setup.sh" build
have redis-server || die "redis-server is the baseline: run 'make setup'"
cargo build --release --locked --quiet -p entremet -p entremet-workload
read -ra options <<<"${BENCH_ARGS:-}"
for word in "${@:-}"; do
    "$CARGO_TARGET_DIR/release/entremet-bench" --server "$CARGO_TARGET_DIR/release/entremet" \
        ${word:+--only "$word"} "${options[@]}"
done
