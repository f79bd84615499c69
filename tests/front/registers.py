"""A register model of what clients wrote and read before a cluster: which values are possible, whatever happened meanwhile.

Each key is written by one client, one write after the other, and read by all clients of its tenant. A value names its tenant,
its key and the number of the write. So what is read tells whose it is, and which acknowledged writes it does not show.

- An *acknowledged* write is there from then on, unless a master was lost: see `Doubts`.
- A *refused* one (`nothing was done`) is never there.
- Of an *unknown* one (the connection broke, or nobody answered) both are possible, also later: its bytes may lie in the socket
  of a process that stands still.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import count

ACKNOWLEDGED, REFUSED, UNKNOWN = "acknowledged", "refused", "unknown"
# Counters begin far apart, so that one is never taken for another.
APART = 1_000_000_000


@dataclass
class Write:
    """One write of one key. Times are of the monotonic clock."""

    number: int
    asked: float
    connection: object
    answered: float = float("inf")
    outcome: str = UNKNOWN


@dataclass
class Read:
    """What one key was read as: the number of a write, or what a counter has counted to. 0: it was not there."""

    number: int
    asked: float
    answered: float
    connection: object
    # How old it may be, s, unless the same connection wrote: it may have been done at a replica.
    lag: float = 0.0
    # It is the reply of an `INCR`, which shows itself.
    counts: bool = False


@dataclass
class Doubt:
    """From `begin` to `end` what a shard acknowledged may be lost, and what it shows may be old."""

    shard: int
    begin: float
    end: float


class Doubts(list):
    """When acknowledged writes may be lost: asynchronous replication loses the last ones of a master that was lost."""

    def at(self, shards, moment):
        return any(doubt.shard in shards and doubt.begin <= moment <= doubt.end for doubt in self)

    def meet(self, shards, begin, end):
        return any(doubt.shard in shards and doubt.begin <= end and begin <= doubt.end for doubt in self)


class Impossible(Exception):
    """A value that no write of this key ever made: somebody else's."""


@dataclass
class Register:
    """One key, and all that was done to it since all was well."""

    tenant: str
    key: str
    counter: bool = False
    slot: int = 0
    numbers: count = field(default_factory=lambda: count(1))
    writes: list = field(default_factory=list)
    # What was there when all was well last, and unknown writes of before that, which may still come.
    settled: int = 0
    late: list = field(default_factory=list)
    base: int = 0
    lost: int = 0

    def write(self, asked, connection):
        """A write begins."""
        self.writes.append(Write(next(self.numbers), asked, connection))
        return self.writes[-1]

    def value(self, number):
        return f"{self.tenant}|{self.key}|{number}".encode()

    def number(self, reply):
        """Which write a reply shows, or what it has counted to."""
        if reply is None:
            return 0
        if self.counter:
            found = int(reply) - self.base
            if not 0 <= found < APART:
                raise Impossible(f"{self.tenant} {self.key} is {reply!r}")
            return found
        tenant, key, number = reply.decode().split("|")
        if (tenant, key) != (self.tenant, self.key):
            raise Impossible(f"{self.tenant} {self.key} is {reply!r}")
        return int(number)

    def wrong(self, reads, doubts, shards):
        """What is impossible of these reads, in words."""
        look = self.counted if self.counter else self.shown
        return [f"{self.tenant} {self.key} in slot {self.slot}: {what}" for read in reads if (what := look(read, doubts, shards))]

    def missing(self, read, doubts, shards):
        """The writes that were acknowledged before a read was asked, and that nothing excuses it not to show."""
        if doubts.meet(shards, read.asked, read.answered):
            return []
        before = lambda write: read.asked - (read.lag if write.connection is not read.connection else 0.0)
        done = (write for write in self.writes if write.outcome == ACKNOWLEDGED)
        return [write for write in done if write.answered < before(write) and not doubts.at(shards, write.answered)]

    def shown(self, read, doubts, shards):
        """A read of a value."""
        # Writes have rising numbers.
        place = bisect_left(self.writes, read.number, key=lambda write: write.number)
        made = self.writes[place] if place < len(self.writes) and self.writes[place].number == read.number else None
        if made is None and read.number != self.settled and read.number not in self.late:
            return f"write {read.number} is read, which was not there when all was well (that was {self.settled})"
        if made is not None and made.outcome == REFUSED:
            return f"write {read.number} is read, of which it was said that nothing was done"
        if made is not None and made.asked > read.answered:
            return f"write {read.number} is read before it was written"
        if read.number in self.late or (made is not None and made.outcome == UNKNOWN):
            return None
        missing = [write.number for write in self.missing(read, doubts, shards) if write.number > read.number]
        return f"write {read.number} is read at {read.asked:.3f}, and {missing} were acknowledged before" if missing else None

    def counted(self, read, doubts, shards):
        """A read of a counter. Writes of it do not show which they are: there is a least and a most."""
        least = self.settled + len(self.missing(read, doubts, shards)) + read.counts
        if doubts.meet(shards, read.asked, read.answered):
            least = 0
        most = self.settled + len(self.late) + sum(write.outcome != REFUSED and write.asked < read.answered for write in self.writes)
        return None if least <= read.number <= most else f"it has counted to {read.number} at {read.asked:.3f}, at least {least} and at most {most} are possible"

    def settle(self, number):
        """All is well, and this is what is there: from now on it is what is known."""
        done = [write for write in self.writes if write.outcome == ACKNOWLEDGED]
        self.late = [write.number for write in self.writes if write.outcome == UNKNOWN]
        if self.counter:
            self.lost += max(0, self.settled + len(done) - number)
        elif number not in self.late:
            self.lost += sum(write.number > number for write in done)
        self.settled, self.writes = number, []
