"""Waiting for something to become true, without guessing how long it takes, and threads that run meanwhile."""

import contextlib
import threading
import time

# A busy machine is given this many times what a quiet one is; it costs nothing where nothing fails.
PATIENCE = 4
# Between two looks; short against what is waited for, long against a look's own cost.
LOOK_EVERY_S = 0.02


def eventually(check, timeout_s=20.0, what=""):
    """Calls `check` until it returns something true, and returns that. An exception counts as not yet. A quiet machine has it within `timeout_s`."""
    timeout_s *= PATIENCE
    deadline, problem, pause = time.monotonic() + timeout_s, None, threading.Event()
    while time.monotonic() < deadline:
        try:
            found = check()
            if found:
                return found
            problem = None
        except (OSError, EOFError, AssertionError) as error:
            problem = error
        pause.wait(LOOK_EVERY_S)
    raise AssertionError(f"not within {timeout_s} s: {what or check.__name__}; the last try: {problem!r}") from problem


@contextlib.contextmanager
def at_work(ended, threads):
    """These threads run until the end, and end when `ended` is set."""
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
