"""A program in a terminal of its own, and what a person would see on it."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading

import pyte

from harness.waiting import eventually


class Terminal:
    """Runs a command in a pseudo-terminal and keeps its screen as text."""

    def __init__(self, command, columns=120, rows=30, environment=None):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.lock = threading.Lock()
        self.raw = b""
        self.master, slave = pty.openpty()
        self.slave = slave
        self.resize(columns, rows)
        self.modes = termios.tcgetattr(slave)
        environment = {**os.environ, "TERM": "xterm-256color", **(environment or {})}
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            if not data:
                return
            with self.lock:
                self.raw += data
                self.stream.feed(data)

    def lines(self):
        """The screen's lines, without blanks at their ends."""
        with self.lock:
            return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines())

    def wait_for(self, *words, timeout_s=20.0):
        eventually(lambda: all(word in self.text() for word in words), timeout_s, f"{words} on the screen")

    def type(self, keys):
        os.write(self.master, keys.encode())

    def resize(self, columns, rows):
        """As a window manager does: the size, then the signal."""
        with self.lock:
            self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if getattr(self, "process", None):
            self.process.send_signal(signal.SIGWINCH)

    def restored(self):
        """True when the terminal's modes are as they were before."""
        return termios.tcgetattr(self.slave) == self.modes

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)
