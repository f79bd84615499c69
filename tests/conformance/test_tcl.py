"""Redis's own suite, file by file."""

import pytest
import skiplist
import tcl

SUITE = "redis-tcl"
SKIPS = skiplist.load(SUITE)


@pytest.mark.parametrize("unit", tcl.UNITS)
def test_file_runs_to_its_end(target, tally, unit):
    """A file that breaks off would silently take its remaining cases with it."""
    skips = SKIPS.get(unit, {})
    outcome = tcl.run(unit, target.port, skips)
    tally.add(unit, len(outcome.passed), len(outcome.skipped), outcome.failed)
    assert target.running(), f"the server died:\n{target.said()[-4000:]}"
    assert outcome.finished, outcome.output[-4000:]
    unknown = set(skips) - set(outcome.skipped)
    assert not unknown, f"the skip list names cases that {unit} does not have: {sorted(unknown)}"


def test_pass_rate(tally):
    assert tally.rate >= skiplist.PASS_RATE_MIN, tally.summary()
