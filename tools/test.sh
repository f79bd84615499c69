#!/usr/bin/env bash
# Sets up, then runs the tests: all of them, or the phases named (setup lint unit tidy fuzz clients crash conformance).
# Each phase says how long it took; the first that fails ends the run.
# shellcheck source=tools/lib.sh
source "$(dirname "$0")/lib.sh"
cd "$ROOT"
export_bindgen_args

phase() {
    local begin=$SECONDS
    say "$1"
    "phase_$1"
    say "$1: $((SECONDS - begin)) s"
}

phase_setup() { tools/setup.sh all; }

phase_lint() {
    cargo fmt --all --check
    cargo clippy --release --locked --workspace --all-targets -- -D warnings
}

# Everything that links RocksDB in the release profile; the pure crates also with debug assertions and overflow checks.
phase_unit() {
    cargo build --release --locked --workspace
    cargo test --release --locked --workspace
    cargo test --locked -p entremet-policy -p entremet-stage
}

phase_fuzz() { tools/fuzz.sh; }
phase_tidy() { (cd tests && "$VENV_PY" -m pytest tidy); }
phase_clients() { (cd tests && "$VENV_PY" -m pytest clients); }
phase_crash() { (cd tests && "$VENV_PY" -m pytest crash); }
phase_conformance() { (cd tests && "$VENV_PY" -m pytest conformance); }

if [[ $# -eq 0 ]]; then
    set -- lint unit tidy fuzz crash clients conformance
fi
phase setup
for name in "$@"; do
    declare -F "phase_$name" >/dev/null || die "no phase '$name'"
    phase "$name"
done
