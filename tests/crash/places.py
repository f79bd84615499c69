"""Places to keep data that misbehave: a small disk, a disk that cannot be written to."""

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


@contextmanager
def small_disk(folder, mebibytes):
    """An ext4 file system of its own, in a file; skips the test where we may not mount one.

    Not a tmpfs: data files are opened for direct I/O, which an ordinary disk supports.
    """
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
        pytest.skip("needs root and mkfs.ext4 to make a small disk")
    image, mount = folder / "disk.img", folder / "disk"
    mount.mkdir()
    with open(image, "wb") as file:
        file.truncate(mebibytes << 20)
    made = run("mkfs.ext4", "-q", "-m", "0", str(image))
    assert made.returncode == 0, made.stderr
    mounted = run("mount", "-o", "loop", str(image), str(mount))
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a file here: {mounted.stderr.strip()}")
    try:
        yield mount
    finally:
        # Lazily: whatever still has a file open there goes on; the space is freed when it ends.
        run("umount", "-l", str(mount))
        image.unlink()


@contextmanager
def read_only(folder):
    """Makes a folder unwritable, for root as well."""
    if os.geteuid() != 0:
        mode = folder.stat().st_mode
        folder.chmod(0o555)
        try:
            yield folder
        finally:
            folder.chmod(mode)
        return
    if run("mount", "--bind", str(folder), str(folder)).returncode != 0:
        pytest.skip("cannot make a folder read-only for root here")
    try:
        remounted = run("mount", "-o", "remount,ro,bind", str(folder))
        assert remounted.returncode == 0, remounted.stderr
        yield folder
    finally:
        run("umount", "-l", str(folder))


def fill(mount, leave_bytes=0):
    """Uses up the disk's space with one file; returns it, so that the test can give the space back."""
    ballast = mount / "ballast"
    free = shutil.disk_usage(mount).free - leave_bytes
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(free, 1))
    return ballast
