"""fakeredis's tests: its model of Redis and the server under test get the same commands, some of them random."""

import os

import pytest
import pysuite
import reference
import skiplist

from harness.paths import SUITES

SUITE = "fakeredis"
PROJECT = pysuite.Suite(
    name=SUITE,
    folder=SUITES / "fakeredis-py",
    files=(
        "test/test_hypothesis/test_connection.py",
        "test/test_hypothesis/test_hash.py",
        "test/test_hypothesis/test_server.py",
        "test/test_hypothesis/test_string.py",
        "test/test_hypothesis/test_transaction.py",
        "test/test_hypothesis/test_zset.py",
        "test/test_hypothesis/test_joint.py",
        "test/test_mixins/test_string_commands.py",
        "test/test_mixins/test_hash_commands.py",
        "test/test_mixins/test_generic_commands.py",
        "test/test_mixins/test_generic_scan_commands.py",
        "test/test_mixins/test_sortedset_commands.py",
        "test/test_mixins/test_sortedset_zadd.py",
        "test/test_mixins/test_transactions_commands.py",
        "test/test_mixins/test_connection_commands.py",
    ),
    settings=(("fakeredis", True),),
    # A sequence is up to fifty commands; a few dozen sequences a file take seconds. `make soak`
    # does more.
    environment=(("FAKEREDIS_HYPOTHESIS_EXAMPLES", os.environ.get("ENTREMET_SEQUENCES", "25")),),
    options=(f"--hypothesis-seed={os.environ.get('ENTREMET_SEED', '1')}",),
)
SKIPS = skiplist.load(SUITE)


@pytest.mark.parametrize("file", PROJECT.files)
def test_file(target, tally, file):
    # The random sequences compare both; the others are told what to expect, so the model need not
    # run again.
    options = () if "hypothesis" in file else ("-mreal",)
    skips = SKIPS.get(file, {})
    results, output = pysuite.run(PROJECT, [*options, file], target.port, skips, reference.known(target.port))
    tally.add(file, len(results["passed"]), len(results["skipped"]), results["failed"])
    assert target.running(), f"the server died:\n{target.said()[-4000:]}"
    assert results["passed"], output[-4000:]
    unknown = pysuite.not_there(skips, results)
    assert not unknown, f"the skip list names cases that {file} does not have: {unknown}"


def test_pass_rate(tally):
    assert tally.rate >= skiplist.PASS_RATE_MIN, tally.summary()
