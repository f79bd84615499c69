"""Finds a small part of a schedule that fails as the whole does, in the time that there is."""

import re
import time
from dataclasses import replace

# A failure that hangs on what happened at the same time is looked for so often in each part.
TRIES_MAX = 4


def kind(problem):
    """Which of the things that may be wrong it is, wherever it is."""
    return re.sub(r"[0-9]+", "N", re.sub(r"^round [0-9]+: ", "", problem))[:24]


class Shrinker:
    """Runs parts of a schedule with `attempt`, which says what is wrong, or None."""

    def __init__(self, attempt, seconds):
        self.attempt, self.end = attempt, time.monotonic() + seconds
        self.kind, self.tries = None, 1

    def over(self):
        return time.monotonic() >= self.end

    def fails(self, schedule):
        """How a schedule fails, if it fails in the way that is looked for."""
        for _ in range(self.tries):
            problem = None if self.over() else self.attempt(schedule)
            if problem and kind(problem) == self.kind:
                return problem
        return None

    def shrunk(self, schedule, problem):
        """(the smallest part found, how it fails). The second is None if nothing failed again."""
        self.kind = kind(problem)
        if at := re.match(r"round ([0-9]+): ", problem):
            schedule = replace(schedule, rounds=[now for now in schedule.rounds if now.number <= int(at[1])])
        again = None
        for self.tries in range(1, TRIES_MAX + 1):
            if again := self.attempt(schedule):
                break
        if not again or kind(again) != self.kind:
            return schedule, None
        before = None
        while schedule != before and not self.over():
            before = schedule
            for places, without in ((rounds, without_rounds), (parts, without_parts), (items, without_items), (frills, without_frills)):
                schedule, again = self.less(schedule, again, places, without)
        return schedule, again

    def less(self, schedule, problem, places, without):
        """Leaves out as many of its places as it can do without: first halves, then what is smaller."""
        found = places(schedule)
        step = len(found)
        while step and not self.over():
            step, at = (step + 1) // 2 if step > 1 else 1, len(found)
            # From the end: what comes late is seldom what made the state that fails.
            while at > 0 and not self.over():
                begin = max(at - step, 0)
                part = without(schedule, set(found[begin:at]))
                if part != schedule and (again := self.fails(part)):
                    schedule, problem, found = part, again, found[:begin] + found[at:]
                at = begin
            if step == 1:
                break
        return schedule, problem


# What may be left out at each height.


def rounds(schedule):
    return [now.number for now in schedule.rounds]


def without_rounds(schedule, out):
    return replace(schedule, rounds=[now for now in schedule.rounds if now.number not in out])


def parts(schedule):
    """Packets, what strangers send, and events."""
    return [
        (now.number, *part)
        for now in schedule.rounds
        for part in (*(("packet", packet.connection) for packet in now.packets), *(("noise", stranger) for stranger, _ in now.noise), ("event", 0))
    ]


def without_parts(schedule, out):
    return each_round(
        schedule,
        lambda now: replace(
            now,
            packets=[packet for packet in now.packets if (now.number, "packet", packet.connection) not in out],
            noise=[noise for noise in now.noise if (now.number, "noise", noise[0]) not in out],
            event="" if (now.number, "event", 0) in out else now.event,
        ),
    )


def items(schedule):
    """Single items of packets, and commands of strangers."""
    return [
        (now.number, who, at)
        for now in schedule.rounds
        for who, listed in (*((packet.connection, packet.items) for packet in now.packets), *((f"noise {stranger}", commands) for stranger, commands in now.noise))
        for at in range(len(listed))
    ]


def without_items(schedule, out):
    def rest(now, who, listed):
        return [item for at, item in enumerate(listed) if (now.number, who, at) not in out]

    return each_round(
        schedule,
        lambda now: replace(
            now,
            packets=[replace(packet, items=rest(now, packet.connection, packet.items)) for packet in now.packets],
            noise=[(stranger, rest(now, f"noise {stranger}", commands)) for stranger, commands in now.noise],
        ),
    )


def frills(schedule):
    """How packets are sent: in pieces, by who does not read, with an end."""
    return [(now.number, packet.connection, name) for now in schedule.rounds for packet in now.packets for name in ("cuts", "deaf", "ending")]


def without_frills(schedule, out):
    plain = {"cuts": 0, "deaf": False, "ending": ""}

    def plainer(now, packet):
        return replace(packet, **{name: value for name, value in plain.items() if (now.number, packet.connection, name) in out})

    return each_round(schedule, lambda now: replace(now, packets=[plainer(now, packet) for packet in now.packets]))


def each_round(schedule, change):
    """With every round changed, and without those in which nothing is left."""
    changed = [change(now) for now in schedule.rounds]
    return replace(schedule, rounds=[now for now in changed if now.packets or now.noise or now.event])
