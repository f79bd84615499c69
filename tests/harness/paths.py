"""Where things are. Nothing here depends on the machine but the two folders that the Makefile exports."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
HOME_CACHE = Path.home() / ".cache"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HOME_CACHE / "entremet-target"))
BUILD = Path(os.environ.get("BUILD", HOME_CACHE / "entremet-build"))
SUITES = BUILD / "suites"
SERVER = os.environ.get("ENTREMET_SERVER", str(TARGET / "release" / "entremet"))
