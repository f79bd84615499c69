"""Parts of a network that can be cut off from each other: namespaces of the kernel, with a wire between two of them.

What is sent over a wire that is cut is lost without a word, as in a switch that has failed. Only root may make them.
"""

import contextlib
import ctypes
import itertools
import os
import subprocess

from harness.cluster import ClusterFront, Node, NodeFront
from harness.server import free_port

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_NETWORK = 0x40000000
# Nobody has it: what is sent there is dropped.
NOBODY = "02:00:00:00:00:01"
NUMBERS = itertools.count()


def ip(*words):
    subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL, capture_output=True)


class Side:
    """One part, in which processes run that can be reached at `host` from all of it, and from the other while the wire is whole."""

    def __init__(self, host):
        self.host, self.name, self.wire = host, f"entremet-{os.getpid()}-{next(NUMBERS)}", None
        ip("netns", "add", self.name)
        self.wrapper = ("ip", "netns", "exec", self.name)
        self.ip("link", "set", "lo", "up")

    def ip(self, *words):
        ip("-n", self.name, *words)

    @contextlib.contextmanager
    def entered(self):
        """What this thread opens meanwhile is on this side."""
        with open("/proc/thread-self/ns/net", "rb") as before, open(f"/run/netns/{self.name}", "rb") as here:
            enter(here)
            try:
                yield
            finally:
                enter(before)

    def close(self):
        ip("netns", "del", self.name)


def enter(namespace):
    if LIBC.setns(namespace.fileno(), NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Sides:
    """Two of them."""

    def __init__(self):
        self.both = Side("10.77.0.1"), Side("10.77.0.2")
        one, other = self.both
        ip("link", "add", "wire", "netns", one.name, "type", "veth", "peer", "name", "wire", "netns", other.name)
        for side in self.both:
            side.ip("address", "add", f"{side.host}/24", "dev", "wire")
            side.ip("link", "set", "wire", "up")

    def cut(self):
        for side, other in (self.both, self.both[::-1]):
            side.ip("neighbour", "replace", other.host, "lladdr", NOBODY, "dev", "wire", "nud", "permanent")

    def mend(self):
        for side, other in (self.both, self.both[::-1]):
            side.ip("neighbour", "del", other.host, "dev", "wire")

    def close(self):
        for side in self.both:
            side.close()


def may_be_made():
    """Whether this process may make them, and start something there."""
    try:
        sides = Sides()
    except (OSError, subprocess.CalledProcessError):
        return False
    started = subprocess.run([*sides.both[0].wrapper, "true"], stdin=subprocess.DEVNULL, capture_output=True)
    sides.close()
    return started.returncode == 0


class OnSide:
    """Mixed into what is started: it runs on its side, and whoever connects to it does so from there."""

    def __init__(self, side, *words, **options):
        self.side, self.wrapper = side, side.wrapper
        super().__init__(*words, **options)

    def wire(self, *words, **options):
        with self.side.entered():
            return super().wire(*words, **options)


class SideNode(OnSide, Node):
    def __init__(self, side, *words):
        super().__init__(side, *words)
        # Its address is none of the loopback's.
        self.options += ("--protected-mode", "no")

    @property
    def host(self):
        return self.side.host


class SideFront(OnSide, NodeFront):
    """One before a node, on the same side."""

    def __init__(self, folder, cluster, node, **options):
        super().__init__(node.side, folder, cluster, node, wrapper=node.side.wrapper, **options)


class FarFront(OnSide, ClusterFront):
    """One of several that are one cluster, with no node on its side."""

    def __init__(self, side, folder, cluster, **options):
        places = f'cluster = {{ listen = "{side.host}:{free_port()}" }}'
        super().__init__(side, folder, cluster, wrapper=side.wrapper, server_options=f"cores = 1\n{places}", **options)
