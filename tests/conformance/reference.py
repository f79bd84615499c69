"""A redis-server that knows only what Entremet promises: the stand-in that tells what a skip list must hold."""

from functools import cache
from pathlib import Path

from harness.resp import Wire
from harness.server import Server

PROMISED_FILE = Path(__file__).parent / "promised.txt"


def promised():
    """The names of the promised commands, lower case."""
    lines = PROMISED_FILE.read_text("utf-8").splitlines()
    return {name for line in lines if not line.startswith("#") for name in line.partition(":")[2].split()}


@cache
def known(port):
    """The names of the commands that a running server has."""
    with Wire(port) as wire:
        return frozenset(entry[0].decode().lower() for entry in wire.ask("COMMAND"))


def reduced(folder, program):
    """A redis-server whose other commands are renamed away. Starts it twice: once to learn what there is."""
    full = Server(folder / "full", program=program).start()
    names = known(full.port) - promised()
    full.kill()
    return Server(folder, program=program, server_options="\n".join(f'rename-command {name} ""' for name in names))
