"""A relay before an engine: it counts the connections of the front's cores, and can stop one of them in the middle of something large."""

import socket
import threading

from harness.waiting import eventually

CHUNK = 1 << 16


class Link:
    """One connection through the relay."""

    def __init__(self, front, engine):
        self.front, self.engine = front, engine
        # Of requests, and of replies.
        self.bytes = [0, 0]
        # It is one of a core's: the front's lookout has no name.
        self.of_core = False
        self.held = False

    def close(self):
        for end in (self.front, self.engine):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Relay:
    """It stands where the front looks for its engine."""

    def __init__(self, engine):
        self.engine, self.all, self.lock = engine, [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.going = threading.Event()
        self.going.set()
        # A direction, and how many bytes may pass that way on each link before it is held.
        self.armed = None
        # New connections are closed at once, as an engine does that has as many as it may have.
        self.refuses = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def links(self):
        """Those of cores that have carried anything."""
        return [link for link in self.all if link.of_core]

    def held(self):
        """Those that are held now."""
        return [link for link in self.all if link.held]

    def hold(self, way, after):
        """From now on a link is held once so many bytes more have passed on it: of requests (0) or replies (1)."""
        with self.lock:
            self.going.clear()
            self.armed = (way, {id(link): link.bytes[way] + after for link in self.all}, after)

    def wait_held(self, count=1):
        return eventually(lambda: len(self.held()) >= count and self.held(), what=f"{count} links are held")

    def release(self):
        with self.lock:
            self.armed = None
            self.going.set()

    def close(self):
        self.release()
        self.listener.close()
        for link in self.all:
            link.close()

    def _accept(self):
        while True:
            try:
                front, _ = self.listener.accept()
            except OSError:
                return
            if self.refuses:
                front.close()
                continue
            try:
                engine = socket.create_connection(("127.0.0.1", self.engine.port))
            except OSError:
                front.close()
                continue
            link = Link(front, engine)
            self.all.append(link)
            for way in (0, 1):
                threading.Thread(target=self._pump, args=(link, way), daemon=True).start()

    def _pump(self, link, way):
        source, target = (link.front, link.engine) if way == 0 else (link.engine, link.front)
        try:
            while data := source.recv(CHUNK):
                if way == 0 and not link.of_core:
                    link.of_core = b"SETNAME" in data
                target.sendall(data)
                link.bytes[way] += len(data)
                self._may_hold(link, way)
        except OSError:
            pass
        link.close()

    def _may_hold(self, link, way):
        with self.lock:
            if self.armed is None or self.armed[0] != way or not link.of_core:
                return
            _, marks, after = self.armed
            link.held = link.bytes[way] >= marks.get(id(link), after)
        if link.held:
            self.going.wait()
            link.held = False
