#!/usr/bin/env bash
# Runs tests in phases, times each, and ends with the summary lines of the test runners, as they
# printed them. `test.sh` runs all phases in order; `test.sh clients crash` runs those two. A phase
# that fails does not keep the others from running, but the script fails in the end.
#
#   ENTREMET_SERVER        another server to test (a redis-server proves the harness)
#   ENTREMET_KILL_ROUNDS   rounds of kill -9 (50)          ENTREMET_SEED   of random tests (1)
#   FUZZ_SECONDS           fuzzing the parser (60)         PYTEST_ARGS     further arguments, such as "-k disk -x"
#   ENTREMET_SESSION_SECONDS   fuzzing whole sessions (40)
#   ENTREMET_SCHEDULES     random schedules before a cluster (200)
# shellcheck source=tools/lib.sh
source "$(dirname "$0")/lib.sh"
cd "$ROOT"
export_bindgen_args
# What fails is made smaller for a minute at most: a smaller case may take much longer.
export PROPTEST_MAX_SHRINK_TIME=60000

ALL=(setup format lint tidy build unit debug fuzz cluster moves schedules crash front conformance operations clients sessions simulations browser experiments)
# Crates whose debug assertions and overflow checks are worth a second run. Those that link RocksDB
# are not built twice.
DEBUG_CRATES=(entremet-policy entremet-stage entremet-telemetry entremet-resp entremet-commands entremet-front)
# These phases wait for other processes most of the time, or simulate it: long ones come first. From
# `unit` on three of them at a time run beside what compiles; each is told of in its turn. What
# measures time (`experiments`) comes last and has the machine for itself.
BESIDE=(cluster moves crash front conformance operations schedules clients sessions simulations browser)
WORKERS=3

logs=$(mktemp -d)
# The process groups of those who run phases beside others.
workers=()
end_beside() {
    local group
    for group in "${workers[@]}"; do kill -- "-$group" 2>/dev/null || true; done
}
trap 'end_beside; rm -rf "$logs"' EXIT
times=() failed=()

# What gave up waiting gets a second try where others have the processors: `again` is then set. It is
# told ("1 rerun"). Whatever else fails has failed.
GAVE_UP=(--reruns 1 --only-rerun "not within [0-9]" --only-rerun TimeoutError --only-rerun TimeoutExpired)
again=

pytest() {
    local pytest_args=() status=0
    read -r -a pytest_args <<<"${PYTEST_ARGS:-}"
    [[ -z $again ]] || pytest_args=("${GAVE_UP[@]}" "${pytest_args[@]}")
    (cd tests && "$VENV_PY" -m pytest -q "$@" "${pytest_args[@]}") || status=$?
    # What was asked for may all be in another phase.
    [[ $status -eq 5 && -n ${PYTEST_ARGS:-} ]] || return "$status"
}

# A phase must leave no doubt about its status, whatever it pipes through: `set -e` does not reach
# into a condition.
run_phase() (
    set -euo pipefail
    case $1 in
        setup) tools/setup.sh all ;;
        format)
            cargo fmt --all --check
            cargo fmt --check --manifest-path tests/clients/rust/Cargo.toml
            cargo fmt --check --manifest-path fuzz/Cargo.toml
            ;;
        lint) cargo clippy --release --locked --workspace --all-targets -- -D warnings ;;
        tidy) pytest tidy ;;
        build)
            cargo build --release --locked -p entremet
            # What experiments measure it against.
            cargo build --release --locked -p entremet-server --example plain_store --example queue_store
            ;;
        unit)
            cargo test --release --locked --workspace --no-fail-fast
            node --test web/tests/*.test.mjs
            ;;
        debug)
            local crate packages=()
            for crate in "${DEBUG_CRATES[@]}"; do packages+=(-p "$crate"); done
            cargo test --locked "${packages[@]}" --no-fail-fast
            ;;
        simulations) pytest experiments -m simulated ;;
        experiments) pytest experiments -m "not simulated" ;;
        cluster)
            local file files=()
            for file in tests/front/test_cluster*.py; do
                [[ $file =~ _(add|control|drain|move|replaced|schedules)\.py$ ]] || files+=("${file#tests/}")
            done
            pytest "${files[@]}"
            ;;
        moves) pytest front/test_cluster_{add,control,drain,move,replaced}.py ;;
        schedules) pytest front/test_cluster_schedules.py ;;
        front) pytest front --ignore-glob='*/test_cluster*' ;;
        operations | browser | clients | crash | sessions | conformance) pytest "$1" ;;
        fuzz) tools/fuzz.sh ;;
        *) die "no phase is named $1; there are: ${ALL[*]}" ;;
    esac
)

# Whether a phase runs beside others, in this run.
is_beside() { [[ -e $logs/$1.waits || -e $logs/$1.begun ]]; }

# Has these phases run beside others, those of them that may. Their server is a copy: cargo may link
# the original anew meanwhile.
begin_beside() {
    local phase worker any=
    for phase in "${BESIDE[@]}"; do
        [[ " $* " == *" $phase "* ]] || continue
        any=yes
        touch "$logs/$phase.waits"
    done
    [[ -n $any ]] || return 0
    mkdir -p "$logs/server"
    cp -n -- "$ENTREMET_SERVER" "$logs/server/"
    for ((worker = 0; worker < WORKERS; worker++)); do add_worker; done
}

# One more who takes phases that nobody has begun, one after the other, in a process group of its own,
# so that all of it can be ended. What each came to is in a file when it has ended, and not before.
add_worker() {
    local phase
    set -m
    (
        set +e +m
        again=yes
        export ENTREMET_SERVER=$logs/server/$(basename "$ENTREMET_SERVER")
        for phase in "${BESIDE[@]}"; do
            mv "$logs/$phase.waits" "$logs/$phase.begun" 2>/dev/null || continue
            SECONDS=0
            run_phase "$phase" </dev/null >"$logs/$phase" 2>&1
            echo "$? $SECONDS" >"$logs/$phase.ending"
            mv "$logs/$phase.ending" "$logs/$phase.ended"
        done
    ) &
    set +m
    workers+=($!)
}

# Waits until a phase that runs beside others has ended.
await_beside() {
    local worker alive
    while [[ ! -e $logs/$1.ended ]]; do
        alive=
        for worker in "${workers[@]}"; do kill -0 "$worker" 2>/dev/null && alive=yes; done
        [[ -n $alive || -e $logs/$1.ended ]] || die "phase $1 ended without a word"
        sleep 1
    done
}

main() {
    local phase at began took status phases=("$@")
    [[ ${#phases[@]} -gt 0 ]] || phases=("${ALL[@]}")
    [[ -x $VENV_PY || ${phases[0]} == setup ]] || tools/setup.sh tests
    for at in "${!phases[@]}"; do
        phase=${phases[at]}
        [[ $phase != unit ]] || begin_beside "${phases[@]:at}"
        say "phase $phase"
        began=$SECONDS status=0
        if is_beside "$phase"; then
            await_beside "$phase"
            cat "$logs/$phase"
            read -r status took <"$logs/$phase.ended"
        else
            # In a subshell of its own, so that `set -e` holds inside although the status is looked
            # at here.
            set +e
            {
                # What compiles takes the processors that others leave.
                [[ ${#workers[@]} -eq 0 || ($phase != unit && $phase != debug) ]] || renice -n 10 -p "$BASHPID" >/dev/null
                run_phase "$phase"
            } </dev/null 2>&1 | tee "$logs/$phase"
            status=${PIPESTATUS[0]}
            set -e
            took=$((SECONDS - began))
        fi
        times+=("$(printf '%6d s  %s%s' "$took" "$phase" "$([[ $status -eq 0 ]] || echo '  FAILED')")")
        if [[ $status -ne 0 ]]; then
            failed+=("$phase")
            # Without these nothing after them means anything.
            [[ $phase != setup && $phase != build ]] || break
        fi
    done
    report
}

# cargo's line is "test result: ok. 12 passed; …", pytest's "34 passed, 1 skipped in 5.67s".
report() {
    local phase
    echo
    say "time of each phase"
    printf '%s\n' "${times[@]}"
    if [[ ${#failed[@]} -gt 0 ]]; then
        say "FAILED: ${failed[*]}"
    else
        say "all phases passed"
    fi
    say "summaries, as the test runners printed them"
    for phase in "${ALL[@]}"; do
        [[ -f $logs/$phase ]] || continue
        grep -aE '^[^ ]+: [0-9]+ of [0-9]+ passed ' "$logs/$phase" || true
        grep -aE '^engines: ' "$logs/$phase" || true
        grep -aE '^test result: ' "$logs/$phase" | grep -av ' 0 passed; 0 failed' || true
        grep -aE '^[0-9]+ (passed|failed|skipped|error|deselected).* in [0-9.]+s' "$logs/$phase" || true
    done
    [[ ${#failed[@]} -eq 0 ]]
}

main "$@"
