"""What the operating system says about a process."""

from pathlib import Path


def resident_bytes(pid):
    """Memory that the process holds now."""
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def descriptors(pid):
    """Number of open descriptors."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def peak_bytes(pid):
    """The most memory that the process has held since it began, or since `forget_peak`."""
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def forget_peak(pid):
    """The peak is what is held now (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", "ascii")
