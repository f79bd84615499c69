"""The smallest part that fails is found, or it is said that nothing fails again."""

from schedule import Packet, Round, Schedule
from shrink import Shrinker

CULPRITS = {(3, 2, "b"), (17, 0, "c")}


def whole():
    """20 rounds of three packets and a stranger."""

    def packet(connection):
        return Packet(connection, [], list("abcd"), "half", deaf=True, cuts=3)

    return Schedule(1, "", 1, [Round(number, [packet(connection) for connection in range(3)], [(0, ["x", "y"])], "stop", 0.5) for number in range(20)])


def said(schedule):
    """All that is sent in it, by whom and when."""
    return {(now.number, packet.connection, item) for now in schedule.rounds for packet in now.packets for item in packet.items}


def test_what_fails_is_shrunk_to_what_makes_it_fail():
    tried = []

    def attempt(schedule):
        tried.append(schedule)
        return f"round 17: {len(tried)} is wrong" if said(schedule) >= CULPRITS else None

    least, problem = Shrinker(attempt, 60).shrunk(whole(), "round 17: 99 is wrong")
    assert said(least) == CULPRITS and problem
    assert [now.number for now in least.rounds] == [3, 17]
    assert not any(now.event or now.noise for now in least.rounds)
    assert all((packet.ending, packet.deaf, packet.cuts) == ("", False, 0) for now in least.rounds for packet in now.packets)
    assert len(tried) < 120
    # What comes behind the round that failed is not played at all.
    assert all(now.number <= 17 for schedule in tried for now in schedule.rounds)


def test_another_failure_is_not_taken_for_the_one_that_is_looked_for():
    def attempt(schedule):
        return "round 17: it is wrong" if said(schedule) >= CULPRITS else "round 1: something else is the matter"

    least, _ = Shrinker(attempt, 60).shrunk(whole(), "round 17: it is wrong")
    assert said(least) == CULPRITS


def test_what_does_not_fail_again_is_said_to():
    assert Shrinker(lambda _: None, 60).shrunk(whole(), "round 17: it is wrong")[1] is None


def test_what_fails_now_and_then_is_tried_again():
    turn = []

    def attempt(schedule):
        turn.append(0)
        return "it is wrong" if len(turn) % 3 == 0 and said(schedule) >= CULPRITS else None

    least, problem = Shrinker(attempt, 60).shrunk(whole(), "it is wrong")
    assert said(least) == CULPRITS and problem
