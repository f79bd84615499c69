# Shared by the scripts of this folder; sourced, never run.
# shellcheck shell=bash

set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/entremet-target}"
export BUILD="${BUILD:-$HOME/.cache/entremet-build}"
export ENTREMET_SERVER="${ENTREMET_SERVER:-$CARGO_TARGET_DIR/release/entremet}"
PYTHON="${PYTHON:-python3}"
VENV_PY="$BUILD/venv/bin/python"

# One line to the reader, told apart from the output of tools.
say() { printf '>> %s\n' "$*"; }
die() { printf '>> error: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# .cargo/config.toml names the folder of Debian 12's gcc headers for bindgen. Elsewhere the compiler
# is asked. It is exported only when it differs, because a changed value makes cargo rebuild
# RocksDB.
export_bindgen_args() {
    local usual=/usr/lib/gcc/x86_64-linux-gnu/12/include
    if [[ ! -d $usual ]] && have gcc; then
        BINDGEN_EXTRA_CLANG_ARGS="-I$(gcc -print-file-name=include)"
        export BINDGEN_EXTRA_CLANG_ARGS
    fi
}
