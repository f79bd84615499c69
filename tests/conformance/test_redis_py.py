"""redis-py's own tests, file by file, synchronous and asynchronous."""

import pytest
import pysuite
import skiplist

from harness.paths import SUITES

SUITE = "redis-py"
PROJECT = pysuite.Suite(
    name=SUITE,
    folder=SUITES / "redis-py",
    files=(
        "tests/test_commands.py",
        "tests/test_pipeline.py",
        "tests/test_encoding.py",
        "tests/test_connection.py",
        "tests/test_connection_pool.py",
        "tests/test_multiprocessing.py",
        "tests/test_asyncio/test_commands.py",
        "tests/test_asyncio/test_pipeline.py",
        "tests/test_asyncio/test_encoding.py",
        "tests/test_asyncio/test_connection_pool.py",
    ),
    options=(
        "--redis-url=redis://127.0.0.1:{port}/0",
        "-mnot redismod and not onlycluster and not ssl and not cp_integration",
    ),
)
SKIPS = skiplist.load(SUITE)


@pytest.mark.parametrize("file", PROJECT.files)
def test_file(target, tally, file):
    skips = SKIPS.get(file, {})
    results, output = pysuite.run(PROJECT, [file], target.port, skips)
    tally.add(file, len(results["passed"]), len(results["skipped"]), results["failed"])
    assert target.running(), f"the server died:\n{target.said()[-4000:]}"
    assert results["passed"], output[-4000:]
    unknown = pysuite.not_there(skips, results)
    assert not unknown, f"the skip list names cases that {file} does not have: {unknown}"


def test_pass_rate(tally):
    assert tally.rate >= skiplist.PASS_RATE_MIN, tally.summary()
