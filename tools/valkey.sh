#!/usr/bin/env bash
# Builds Valkey from the source archive SOURCE into the build cache, where the tests of fronts find
# it: then they run before it, too. Another one is named in VALKEY_SERVER.
# shellcheck source=tools/lib.sh
source "$(dirname "$0")/lib.sh"

source=${SOURCE:-}
[[ -n $source ]] || die "which one? Say SOURCE=valkey-9.1.2.tar.gz: an archive of Valkey's source"
[[ -f $source ]] || die "there is no file $source"
target=$BUILD/valkey
rm -rf -- "$target"
mkdir -p "$target"
tar -xf "$source" -C "$target" --strip-components=1
say "building in $target"
make -C "$target" -j"$(nproc)" BUILD_TLS=no MALLOC=libc >"$target/build.log" 2>&1 ||
    die "it does not build; the end of $target/build.log: $(tail -n 3 "$target/build.log")"
"$target/src/valkey-server" --version
