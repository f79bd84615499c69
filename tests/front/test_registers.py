"""The register model finds what it is there to find. It needs no server."""

import pytest
from registers import ACKNOWLEDGED, APART, REFUSED, Doubt, Doubts, Impossible, Read, Register

ME, OTHER = object(), object()


def written(outcomes, **options):
    """A register that each second a write began of, which took half of one; its first was there when all was well."""
    register = Register("alpha", "k", **options)
    register.settled = 0 if options else next(register.numbers)
    for second, outcome in enumerate(outcomes, 1):
        write = register.write(float(second), ME)
        write.answered, write.outcome = second + 0.5, outcome
    return register


def wrong(register, number, asked, doubts=(), connection=OTHER, **options):
    return register.wrong([Read(number, asked, asked + 0.1, connection, **options)], Doubts(doubts), {1})


def test_an_acknowledged_write_is_there_unless_its_shard_was_lost_just_then():
    register = written([ACKNOWLEDGED, ACKNOWLEDGED])
    assert not wrong(register, 3, 3.0) and not wrong(register, 2, 2.4)
    assert "[3] were acknowledged" in wrong(register, 2, 3.0)[0]
    assert not wrong(register, 2, 3.0, [Doubt(1, 2.4, 2.6)])
    assert wrong(register, 1, 3.0, [Doubt(1, 2.4, 2.6)]) and wrong(register, 2, 3.0, [Doubt(0, 2.4, 2.6)])
    assert wrong(register, 0, 3.0) and wrong(register, 4, 3.0)
    register.settle(2)
    assert register.lost == 1 and wrong(register, 3, 9.0) and not wrong(register, 2, 9.0)


def test_reads_at_replicas_may_be_old_but_for_the_connection_that_wrote():
    register = written([ACKNOWLEDGED])
    assert not wrong(register, 1, 2.0, lag=1.0) and wrong(register, 1, 2.6, lag=1.0)
    assert wrong(register, 1, 2.0, lag=1.0, connection=ME)


def test_what_was_refused_is_never_there_and_what_is_not_known_may_be():
    register = written([REFUSED, "unknown", ACKNOWLEDGED])
    assert "nothing was done" in wrong(register, 2, 5.0)[0]
    assert not wrong(register, 3, 5.0) and not wrong(register, 4, 5.0)
    assert "before it was written" in wrong(register, 4, 2.0)[0]
    register.settle(4)
    assert not wrong(register, 3, 9.0) and wrong(register, 2, 9.0)


def test_counters_do_not_go_back_nor_too_far():
    register = written([ACKNOWLEDGED, "unknown", REFUSED], counter=True)
    assert [bool(wrong(register, number, 5.0)) for number in range(4)] == [True, False, False, True]
    assert wrong(register, 1, 5.0, counts=True) and not wrong(register, 2, 5.0, counts=True)
    assert not wrong(register, 0, 5.0, [Doubt(1, 1.0, 2.0)])


def test_values_of_others_are_seen():
    register = Register("alpha", "k")
    assert register.number(register.value(7)) == 7 and register.number(None) == 0
    for other in (Register("beta", "k"), Register("alpha", "l")):
        with pytest.raises(Impossible):
            register.number(other.value(7))
    with pytest.raises(Impossible):
        Register("alpha", "n", counter=True, base=APART).number(b"7")
