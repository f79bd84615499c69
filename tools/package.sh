#!/usr/bin/env bash
# Makes a Debian package of the release binary, which must be built: `make package` does both.
# debhelper is used rather than cargo-deb or dpkg-deb alone: it writes the maintainer scripts'
# systemd parts as Debian's policy wants them, and apt has it.
#
#   PACKAGE_DIR         where the packages go (package/ in the target directory)
#   DEBFULLNAME, DEBEMAIL   who answers for the package
#   SOURCE_DATE_EPOCH   time of its files (that of the last commit): the same binary gives the same package
# shellcheck source=tools/lib.sh
source "$(dirname "$0")/lib.sh"
cd "$ROOT"

binary=$CARGO_TARGET_DIR/release/entremet
out=${PACKAGE_DIR:-$CARGO_TARGET_DIR/package}
stage=$out/stage
maintainer="${DEBFULLNAME:-Entremet maintainers} <${DEBEMAIL:-maintainers@entremet.invalid}>"

[[ -x $binary ]] || die "there is no $binary: make build"
have dh || die "debhelper is missing: make setup"
read -r _ version _ < <("$binary" --version)
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}"
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8
umask 022

rm -rf -- "$out"
mkdir -p "$stage/completions/bash" "$stage/completions/zsh" "$stage/completions/fish" "$stage/examples"
cp -r packaging/debian "$stage/debian"
cp packaging/entremet.service "$stage/debian/entremet.service"
cp packaging/entremet.toml README.md ARCHITECTURE.md CHANGELOG.md "$stage/"
cp entremet.toml "$stage/examples/"
cp -r docs "$stage/docs"
cp "$binary" "$stage/entremet"
"$binary" man "$stage/man"
"$binary" completions bash >"$stage/completions/bash/entremet"
"$binary" completions zsh >"$stage/completions/zsh/_entremet"
"$binary" completions fish >"$stage/completions/fish/entremet.fish"
"$PYTHON" tools/notices.py >"$stage/NOTICES"
sed -i "s/@MAINTAINER@/$maintainer/" "$stage/debian/control"
cat >"$stage/debian/changelog" <<TEXT
entremet ($version-1) unstable; urgency=medium

  * Version $version. What users notice is in the changelog beside this file.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
TEXT

(cd "$stage" && dh binary --no-parallel >"$out/log" 2>&1) || { cat "$out/log" >&2; die "debhelper failed"; }
rm -rf -- "$stage"
for package in "$out"/*.deb; do say "$package ($(du -h "$package" | cut -f1))"; done
