"""As many requests as a front lets through, for a while."""

import contextlib
import threading

from harness.resp import encode
from harness.waiting import at_work

DEPTH = 50


@contextlib.contextmanager
def flood(front, tenant, *words, clients=4):
    """A tenant's clients ask this of a front, `GET k` unless said, until the end."""
    ended, request = threading.Event(), encode(*(words or ("GET", "k")))

    def ask():
        with contextlib.suppress(OSError, EOFError), front.wire(tenant) as wire:
            while not ended.is_set():
                wire.raw(request * DEPTH)
                for _ in range(DEPTH):
                    wire.read()

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    with at_work(ended, threads):
        yield
