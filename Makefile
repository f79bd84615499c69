# Entremet: every task a person or a machine needs, by name. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# RocksDB takes a quarter of an hour to compile, so every checkout shares one target directory, and
# everything that links RocksDB is built in the release profile only: a debug build would compile it again.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/entremet-target
# What the tests download or build for themselves (virtual environment, suites, modules of clients).
export BUILD ?= $(HOME)/.cache/entremet-build
# Set PYTHON to choose the interpreter that the virtual environment is made with.
export PYTHON ?= python3

ENTREMET := $(CARGO_TARGET_DIR)/release/entremet
VENV_PY := $(BUILD)/venv/bin/python
# The server under test; any redis-server can stand in for it (see tests/README.md).
export ENTREMET_SERVER ?= $(ENTREMET)

.PHONY: help setup setup-build setup-tests setup-package build package run fmt lint test test-unit test-tidy \
        test-operations test-browser test-experiments test-clients test-front test-conformance test-crash test-sessions soak fuzz bench experiments valkey clean distclean

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z][a-z-]*:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install what is missing to build and to test, saying what
	@tools/setup.sh all

setup-build: ## Install only what is missing to build and run
	@tools/setup.sh build

setup-tests:
	@tools/setup.sh tests

setup-package:
	@tools/setup.sh package

build: setup-build ## Build the release binary
	cargo build --release --locked -p entremet

package: setup-package build ## Make a Debian package of it, with unit, user, manual and completions
	@tools/package.sh

run: ## Build if needed, then start the server with two demo tenants
	@tools/run.sh

fmt: ## Format all code
	cargo fmt --all
	cd tests/clients/rust && cargo fmt
	cd fuzz && cargo fmt
	gofmt -w tests/clients/go

lint: ## Check format, clippy and the house rules
	@tools/test.sh setup format lint tidy

test: ## Set up, then run every test (what CI runs)
	@tools/test.sh

test-unit: ## Rust tests only
	@tools/test.sh unit

test-tidy: ## House rules only (needs no build)
	@tools/test.sh tidy

test-clients: ## Real clients, exporter, benchmark tool and YCSB
	@tools/test.sh clients

test-conformance: ## Redis's own suite, redis-py's and fakeredis's
	@tools/test.sh conformance

test-operations: ## Start, health, reload, isolation, the README's session
	@tools/test.sh operations

test-browser: ## The dashboard in a headless Chromium
	@tools/test.sh browser

test-front: ## Before a redis-server, and Valkey where there is one
	@tools/test.sh front cluster moves schedules

valkey: ## Build Valkey from a SOURCE archive, for test-front
	@SOURCE="$(SOURCE)" tools/valkey.sh

test-crash: ## kill -9, full disks, hostile clients
	@tools/test.sh crash

test-sessions: ## Random sessions of several tenants, against a model of each
	@tools/test.sh sessions

test-experiments: ## Every experiment in its short form
	@tools/test.sh simulations experiments

soak: ## Crash tests, random sessions, sequences and schedules, and fuzzing for hours instead of minutes
	@ENTREMET_KILL_ROUNDS=1000 ENTREMET_SEQUENCES=1000 ENTREMET_SCHEDULES=1000 ENTREMET_SEED=$$RANDOM FUZZ_SECONDS=3600 ENTREMET_SESSION_SECONDS=7200 \
		ENTREMET_HOSTILE_WORDS=1000000 ENTREMET_HOSTILE_BYTES=134217728 ENTREMET_HOSTILE_MEMBERS=1000000 ENTREMET_HOSTILE_MEMORY=1 \
		ENTREMET_SUITE_TIMEOUT_S=7200 PYTEST_ARGS=--timeout=9000 tools/test.sh crash sessions cluster moves schedules conformance fuzz

fuzz: ## Fuzz the RESP parser (FUZZ_SECONDS=60)
	@tools/fuzz.sh

bench: ## Every benchmark, each with its baseline beside it
	@tools/bench.sh

experiments: build ## Published results run again beside their baselines (EXPERIMENT=NAME, QUICK=1, SLICE=8min)
	@cargo build --release --locked -p entremet-server --example plain_store --example queue_store
	"$(ENTREMET)" experiment $(or $(EXPERIMENT),all) $(if $(QUICK),--quick) $(if $(SLICE),--within $(SLICE))

clean: ## Remove what the tests built; keep the compiled RocksDB
	rm -rf -- "$(BUILD)"

distclean: clean ## Remove the target directory too: the next build compiles RocksDB again
	cargo clean
