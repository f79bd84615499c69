#!/usr/bin/env python3
"""Drafts the skip lists: runs the suites against the server and names the cases that cannot apply to it.

    classify.py redis-tcl|redis-py|fakeredis [FILE…]          (from the folder tests/, with ENTREMET_SERVER)

A case is listed when its failure names a command that neither the project promises nor the server has, or when
redis-server itself fails it here. What else fails is printed: it needs a person's judgement, and either a fix or a reason
written by hand. Reasons that are in a list already are kept.
"""

import re
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

import pysuite  # noqa: E402
import reference  # noqa: E402
import skiplist  # noqa: E402
import tcl  # noqa: E402
import test_fakeredis  # noqa: E402
import test_redis_py  # noqa: E402
from conftest import LIMITS, MASTER  # noqa: E402

from harness.server import Server  # noqa: E402

UNKNOWN = re.compile(r"unknown (?:sub)?command '?([A-Za-z|_-]+)'?", re.IGNORECASE)
TITLE = "Cases of {} that do not apply to Entremet, and why. `classify.py {}` drafts this list."
ROUNDS_MAX = 12


def unsupported(detail, known):
    """The reason, if the text of a failure names a command that the server does not have."""
    names = {found.lower() for found in UNKNOWN.findall(detail)} - known
    return f"needs {sorted(names)[0].upper()}, which is not supported" if names else None


def bodies(unit):
    """The text of each case of a Tcl file, lower case, by its name; cases whose name is computed are not found."""
    text = (tcl.REDIS / "tests" / f"{unit}.tcl").read_text("utf-8", "replace")
    parts = re.split(r"^ *test [{\"](.*?)[}\"] *\{ *$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (body.lower() for body in parts[2::2])))


def classify_tcl(unit, server, known, skips):
    """Adds to `skips` until no case fails for want of a command; returns the failures that remain.

    One failing case can derail those after it (a transaction left open, a reply left unread): a case is listed only if
    its own text names the command, and the file is run again without what was found.
    """
    sources = bodies(unit)
    for _ in range(ROUNDS_MAX):
        outcome, fresh = tcl.run(unit, server.port, skips), {}
        for name, detail in outcome.failed.items():
            reason = unsupported(detail, known)
            if reason and reason.split()[1].rstrip(",").lower() in sources.get(name, reason.lower()):
                fresh[name] = reason
        skips.update(fresh)
        if not fresh:
            break
    return len(outcome.passed), outcome.failed


def classify_python(module, file, server, known, skips, redis):
    """Adds to `skips` what redis-server fails too and what wants an unknown command; returns the failures that remain."""
    extra = ("-mreal",) if module is test_fakeredis and "hypothesis" not in file else ()
    ran, _ = pysuite.run(module.PROJECT, [*extra, file], server.port, skips, reference.known(server.port))
    rest = {}
    for name, detail in ran["failed"].items():
        reason = unsupported(detail, known)
        if reason:
            skips[name.partition("[")[0]] = reason
        else:
            rest[name] = detail
    if rest:
        again, _ = pysuite.run(module.PROJECT, [*extra, file], redis.port, skips, reference.known(redis.port))
        for name in set(rest) & set(again["failed"]):
            skips[name.partition("[")[0]] = "redis-server 7.0 fails it here too"
            del rest[name]
    return len(ran["passed"]), rest


def main():
    suite, *files = sys.argv[1:]
    module = {"redis-py": test_redis_py, "fakeredis": test_fakeredis}.get(suite)
    lists = skiplist.load(suite)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "ours", tenants=(MASTER,), server_options=LIMITS).start()
        redis = Server(Path(folder) / "redis", tenants=(MASTER,), program="redis-server").start()
        known = reference.promised() | reference.known(server.port)
        for file in files or (module.PROJECT.files if module else tcl.UNITS):
            skips = lists.setdefault(file, {})
            if module:
                passed, failed = classify_python(module, file, server, known, skips, redis)
            else:
                passed, failed = classify_tcl(file, server, known, skips)
            print(f"{file}: {passed} passed, {len(skips)} skipped, {len(failed)} need judgement", flush=True)
            for name, detail in failed.items():
                print(f"    {name}: {detail.strip()[-400:]}")
            skiplist.save(suite, lists, TITLE.format(suite, suite))
        server.kill()
        redis.kill()


if __name__ == "__main__":
    main()
