"""Runs one file of Redis's own suite against a running server, and reads what it printed."""

import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from harness.paths import SUITES

REDIS = SUITES / "redis"
UNITS = (
    "unit/type/string",
    "unit/type/incr",
    "unit/type/hash",
    "unit/type/zset",
    "unit/expire",
    "unit/keyspace",
    "unit/scan",
    "unit/quit",
    "unit/protocol",
    "unit/multi",
    "unit/slowlog",
    "unit/introspection-2",
)
OPTIONS = ("--singledb", "--durable", "--ignore-encoding", "--ignore-digest", "--no-latency", "--clients", "1")
TAGS = "-needs:repl -needs:debug -slow -large-memory"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LINE = re.compile(r"^\[(ok|err|skip|ignore|exception|timeout)\]: (.*)$")
TIMEOUT_S = 240


@dataclass
class Outcome:
    """What one file gave: names of cases, and for the failed ones their text."""

    passed: list = field(default_factory=list)
    skipped: list = field(default_factory=list)
    failed: dict = field(default_factory=dict)
    finished: bool = False
    output: str = ""


def run(unit, port, skipped=()):
    """Runs `unit`, leaving out the cases named in `skipped`."""
    with tempfile.NamedTemporaryFile("w", suffix=".skip") as skipfile:
        skipfile.write("\n".join(skipped) or "no case has this name")
        skipfile.flush()
        command = ["./runtest", "--host", "127.0.0.1", "--port", str(port), *OPTIONS]
        command += ["--tags", TAGS, "--skipfile", skipfile.name, "--single", unit]
        try:
            done = subprocess.run(
                command, cwd=REDIS, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False
            )
            output = done.stdout
        except subprocess.TimeoutExpired as late:
            output = (late.stdout or b"") + b"\n[timeout]: the file did not end in time\n"
    return parse(unit, COLOUR.sub("", output.decode("utf-8", "replace")))


def parse(unit, output):
    """Sorts the suite's output by verdict. A failure's detail is the lines up to the next verdict."""
    outcome, detail_of = Outcome(output=output), None
    for line in output.splitlines():
        found = LINE.match(line)
        if not found:
            if detail_of and line.strip():
                outcome.failed[detail_of] += line + "\n"
            continue
        verdict, rest = found.groups()
        detail_of = None
        if verdict == "ok":
            outcome.passed.append(re.sub(r" \(\d+ ms\)$", "", rest))
        elif verdict == "skip":
            outcome.skipped.append(rest)
        elif verdict in ("err", "exception", "timeout"):
            detail_of = rest.rpartition(" in tests/")[0] or rest
            outcome.failed.setdefault(detail_of, "")
    outcome.finished = f"done]: {unit}" in output or f"done: {unit}" in output or "The End" in output
    return outcome
