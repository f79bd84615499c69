#!/usr/bin/env bash
# Installs what is missing and says what. `setup.sh build` suffices for `make run`, `package` for
# `make package`; `tests` adds what the tests need; `all` does all. Running it again when nothing is
# missing takes about a second. shellcheck source=tools/lib.sh
source "$(dirname "$0")/lib.sh"

missing=()

# need PACKAGE CONDITION...: remembers a Debian package whose effect is not there yet.
need() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

# The C interface that bindgen loads. libclang-cpp, which a machine may have without it, does not
# serve.
has_libclang() { ldconfig -p 2>/dev/null | grep -q 'libclang[-0-9.]*\.so' || compgen -G '/usr/lib/llvm-*/lib/libclang[-.][0-9s]*' >/dev/null; }
has_venv() { "$PYTHON" -c 'import venv, ensurepip'; }

# Debian 12 has libclang1-14; others number it differently. Any of them serves bindgen.
libclang_package() {
    local version
    for version in 14 15 16 17 18 19 20; do
        if apt-cache show "libclang1-$version" >/dev/null 2>&1; then
            printf 'libclang1-%s' "$version"
            return
        fi
    done
    printf 'libclang-dev'
}

list_build_packages() {
    need g++ have g++
    need make have make
    need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
    need redis-tools have redis-cli
    has_libclang || missing+=(libclang)
}

list_package_packages() {
    need debhelper have dh
    need python3 have "$PYTHON"
}

list_test_packages() {
    need adduser have adduser
    need iproute2 have ip
    need python3 have "$PYTHON"
    need python3-venv has_venv
    need openssl have openssl
    need redis-server have redis-server
    need redis-tools have redis-benchmark
    need tcl have tclsh
    need golang-go have go
    need default-jdk-headless have javac
    need maven have mvn
    need nodejs have node
    need npm have npm
    need chromium have chromium
    need chromium-driver have chromedriver
}

# Installs with no questions, and keeps a package's service from starting: a Redis that somebody
# else runs on this machine, or the ports it wants, are none of our business.
apt_install() {
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    local sudo=() policy=/usr/sbin/policy-rc.d ours=0
    if [[ $(id -u) -ne 0 ]]; then
        have sudo && sudo -n true 2>/dev/null || die "not root, and sudo asks for a password. Please run: apt-get install $*"
        sudo=(sudo -n -E)
    fi
    "${sudo[@]}" apt-get update -qq || say "the package lists could not be refreshed; going on with those that are there"
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" tee "$policy" >/dev/null
        "${sudo[@]}" chmod 755 "$policy"
        ours=1
    fi
    local status=0
    "${sudo[@]}" apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null || status=$?
    [[ $ours -eq 0 ]] || "${sudo[@]}" rm -f "$policy"
    [[ $status -eq 0 ]] || die "apt-get install $* failed with status $status"
}

install_packages() {
    [[ ${#missing[@]} -gt 0 ]] || return 0
    if ! have apt-get; then
        die "this is not a Debian or Ubuntu system. Please install by hand what these packages hold: ${missing[*]}"
    fi
    local i
    for i in "${!missing[@]}"; do
        [[ ${missing[$i]} != libclang ]] || missing[i]=$(libclang_package)
    done
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
    say "installing packages: ${missing[*]}"
    apt_install "${missing[@]}"
}

need_rust() {
    have cargo || die "Rust is missing. Please install it with rustup (rust-version in Cargo.toml says the oldest that works) and call again."
}

# stamped NAME INPUT...: true when NAME was made from exactly these inputs; `stamp NAME INPUT...`
# writes that down.
digest() { cat -- "$@" | sha256sum | cut -d' ' -f1; }
stamped() { [[ -f $BUILD/stamps/$1 && $(<"$BUILD/stamps/$1") == "$(digest "${@:2}")" ]]; }
stamp() { mkdir -p "$BUILD/stamps" && digest "${@:2}" >"$BUILD/stamps/$1"; }

setup_python() {
    local pins=$ROOT/tests/requirements.txt
    if ! stamped venv "$pins" || ! "$VENV_PY" -c 'import pytest' 2>/dev/null; then
        say "making the Python environment in $BUILD/venv"
        rm -rf "$BUILD/venv"
        "$PYTHON" -m venv "$BUILD/venv"
        "$VENV_PY" -m pip install --quiet --disable-pip-version-check -r "$pins"
        stamp venv "$pins"
    fi
}

setup_node() {
    local from=$ROOT/tests/clients/node
    mkdir -p "$BUILD/node"
    cp "$from"/*.json "$from"/*.mjs "$BUILD/node/" # modules are looked up from where a program lies
    stamped node "$from/package-lock.json" && return
    say "installing the Node clients"
    (cd "$BUILD/node" && npm ci --silent --no-audit --no-fund)
    stamp node "$from/package-lock.json"
}

setup_go() {
    local from=$ROOT/tests/clients/go
    stamped go "$from/go.mod" "$from/go.sum" "$from"/*.go && [[ -x $BUILD/bin/client-go ]] && return
    say "building the Go client"
    mkdir -p "$BUILD/bin"
    (cd "$from" && go build -o "$BUILD/bin/client-go" .)
    stamp go "$from/go.mod" "$from/go.sum" "$from"/*.go
}

setup_java() {
    local from=$ROOT/tests/clients/java sources
    mapfile -t sources < <(find "$from/src" "$from/pom.xml" -type f | sort)
    stamped java "${sources[@]}" && [[ -f $BUILD/java/clients.jar ]] && return
    say "building the Java clients and the YCSB binding"
    rm -rf "$BUILD/java"
    mkdir -p "$BUILD/java"
    cp -r "$from/src" "$from/pom.xml" "$BUILD/java/"
    (cd "$BUILD/java" && mvn -q -B -ntp package </dev/null && mv target/clients.jar clients.jar && mv target/lib lib)
    stamp java "${sources[@]}"
}

setup_rust_client() {
    (cd "$ROOT/tests/clients/rust" && cargo build --quiet --locked)
}

# The exporter comes from the distribution, but is unpacked instead of installed: its package would
# start a service.
setup_exporter() {
    local program=$BUILD/bin/prometheus-redis-exporter work=$BUILD/exporter
    [[ -x $program ]] && return
    say "fetching redis_exporter"
    rm -rf "$work"
    mkdir -p "$work" "$BUILD/bin"
    (cd "$work" && apt-get download -qq prometheus-redis-exporter 2>/dev/null && dpkg -x ./*.deb unpacked) \
        || die "the package prometheus-redis-exporter cannot be fetched (apt-get download)"
    cp "$work/unpacked/usr/bin/prometheus-redis-exporter" "$program"
    rm -rf "$work"
}

setup_suites() {
    "$VENV_PY" "$ROOT/tools/fetch_suites.py" --into "$BUILD/suites"
}

what=${1:-all}
case $what in
    build) list_build_packages ;;
    package) list_build_packages; list_package_packages ;;
    tests | all) list_build_packages; list_package_packages; list_test_packages ;;
    *) die "usage: setup.sh [build|package|tests|all]" ;;
esac
install_packages
need_rust
mkdir -p "$BUILD"
if [[ $what == tests || $what == all ]]; then
    setup_python
    setup_node
    setup_go
    setup_java
    setup_rust_client
    setup_exporter
    setup_suites
    say "everything that the tests need is in place"
fi
