#!/usr/bin/env bash
# Fuzzes the RESP codec for FUZZ_SECONDS (60). New inputs that reach new code are kept in the build
# cache; an input that breaks something is left there too, and its path is printed.
#
# libFuzzer works with a stable compiler: its instrumentation is an ordinary LLVM pass. Only
# sanitizers would need a nightly one, and code without `unsafe` has little for them to find.
# shellcheck source=tools/lib.sh
source "$(dirname "$0")/lib.sh"

seconds=${FUZZ_SECONDS:-60}
corpus=$BUILD/fuzz/corpus
crashes=$BUILD/fuzz/crashes
# A target directory of its own: these flags would otherwise take turns with everybody else's.
export CARGO_TARGET_DIR=$BUILD/fuzz/target
mkdir -p "$corpus" "$crashes"
target=$(rustc -vV | sed -n 's/^host: //p')

# With --target, these reach the code under test but neither build scripts nor macros.
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
(cd "$ROOT/fuzz" && cargo build --quiet --release --locked --target "$target")

say "fuzzing the RESP codec for $seconds s"
"$CARGO_TARGET_DIR/$target/release/resp" "$corpus" "$ROOT/fuzz/seeds" \
    -dict="$ROOT/fuzz/dictionary.txt" -max_total_time="$seconds" -max_len=4096 -rss_limit_mb=1024 -timeout=10 \
    -artifact_prefix="$crashes/" -print_final_stats=1 -verbosity=0
say "fuzz: ok, nothing broke in $seconds s"
