"""A spare machine to install on: this one's root under an overlay, with processes and a network of its own.

What is done there lies in memory and goes with it. Nothing of this machine changes.
"""

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.waiting import eventually

TOOLS = ("unshare", "nsenter", "setpriv", "ip")
# $1: where to mount things, $2: name of a control group. What systemd makes of control groups it
# makes in there.
SEPARATE = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root" "$1/groups"
mount -t cgroup2 cgroup2 "$1/groups"
mkdir "$1/groups/$2"
echo 0 >"$1/groups/$2/cgroup.procs"
exec unshare --cgroup sh -c "$3" sh "$1" "$4"
"""
# $1: the same, $2: what holds all of it, as the first process.
SETUP = """
set -e
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs dev
for device in null zero full random urandom tty; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts devpts dev/pts -o newinstance,ptmxmode=0666
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
rm -f usr/sbin/policy-rc.d
ip link set lo up
mkdir here
pivot_root . here
umount -l here
rmdir here
echo ready
export container=spare
exec $2
"""
CLEAN = """
mount -t tmpfs tmpfs "$1"
mkdir "$1/groups"
mount -t cgroup2 cgroup2 "$1/groups"
[ ! -d "$1/groups/$2" ] || find "$1/groups/$2" -depth -type d -exec rmdir {} +
"""
WAIT, SYSTEMD = "sleep infinity", "/lib/systemd/systemd --system --unit=basic.target"
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


class Spare:
    """The spare machine, while its holder lives."""

    def __init__(self, holder):
        first = str(children(holder.pid)[0])
        self.enter = ["nsenter", "--target", first, "--mount", "--net", "--pid", "--cgroup", "--root", "--wd"]

    def command(self, *command, user=None):
        """The words that run a command there: as root, or as a user with no more rights than that one has."""
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--no-new-privs"] if user else []
        return [*self.enter, *become, *map(str, command)]

    def run(self, *command, user=None, **options):
        """Runs a command to its end; what it printed, on either stream, is in `stdout`."""
        return subprocess.run(
            self.command(*command, user=user), env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=120, check=False, **options,
        )  # fmt: skip

    def ask(self, *command, user=None):
        """Runs a command that must succeed; what it printed."""
        done = self.run(*command, user=user)
        assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}"
        return done.stdout.strip()

    def exists(self, path):
        return self.run("test", "-e", path).returncode == 0

    def write(self, path, data):
        """Makes a file there."""
        subprocess.run(self.command("tee", path), input=data, check=True, stdout=subprocess.DEVNULL)


class Service:
    """A process there that says when it is ready."""

    def __init__(self, spare, command, user, ready):
        self.process = subprocess.Popen(
            spare.command(*command, user=user), env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            if ready in line:
                return
        raise AssertionError(f"it ended with status {self.process.wait()}:\n{''.join(self.said)}")

    def stop(self):
        """SIGTERM to the process itself (nsenter waits for it), and its status."""
        os.kill(children(self.process.pid)[0], signal.SIGTERM)
        self.process.communicate(timeout=30)
        return self.process.returncode


def children(pid):
    """Process ids of the children of a process."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


@contextmanager
def spare_machine(place, systemd=False):
    """A spare machine, mounted in a folder, where systemd runs or nothing does; skips the test where we may not make one."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"needs root to mount an overlay, and {', '.join(TOOLS)}")
    if systemd and not os.path.exists(SYSTEMD.split()[0]):
        pytest.skip("needs systemd")
    place.mkdir()
    group = f"entremet-{os.getpid()}-{place.parent.name}"
    separate = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", SEPARATE, "sh"]
    holder = subprocess.Popen(
        [*separate, str(place), group, SETUP, SYSTEMD if systemd else WAIT],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        said = holder.stdout.readline()
        if said != "ready\n":
            pytest.skip(f"cannot make a spare machine here: {said.strip()}")
        spare = Spare(holder)
        if systemd:
            eventually(lambda: spare.run("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"), 60)
        yield spare
    finally:
        # The first process of its namespace takes all others with it.
        holder.kill()
        holder.communicate()
        clean = ["unshare", "--mount", "sh", "-c", CLEAN, "sh", str(place), group]
        eventually(lambda: subprocess.run(clean, check=False, capture_output=True).returncode == 0, what="its processes are gone")
