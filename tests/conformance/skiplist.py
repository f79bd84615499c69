"""Skip lists: which cases of another project's suite do not apply to Entremet, and why.

One file a suite in `skips/`. A line in brackets opens a section (a file of the suite); every other line is the name of
a case, a tab, and the reason. A case that is skipped counts neither as passed nor as failed.
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "skips"
# Of the cases that are not skipped, at least this share must pass (the project's own bar).
PASS_RATE_MIN = 0.98


def load(suite):
    """The skip list of `suite`: {section: {case: reason}}."""
    path = FOLDER / f"{suite}.txt"
    sections, current = {}, None
    for number, line in enumerate(path.read_text("utf-8").splitlines() if path.exists() else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]") and "\t" not in line:
            current = sections.setdefault(line[1:-1], {})
            continue
        name, tab, reason = line.partition("\t")
        if not tab or not reason.strip() or current is None:
            raise ValueError(f"{path.name}:{number}: expected a case, a tab and a reason, under a [section]")
        current[name] = reason.strip()
    return sections


def save(suite, sections, title):
    """Writes a skip list; the counterpart of `load`."""
    lines = [f"# {title}"]
    for section in sorted(sections):
        if sections[section]:
            lines += ["", f"[{section}]", *(f"{name}\t{reason}" for name, reason in sorted(sections[section].items()))]
    (FOLDER / f"{suite}.txt").write_text("\n".join(lines) + "\n", "utf-8")


class Tally:
    """Counts over all files of one suite."""

    def __init__(self, suite):
        self.suite = suite
        self.passed, self.skipped, self.failed = 0, 0, {}

    def add(self, section, passed, skipped, failed):
        """Adds one file's results; `failed` maps a case to its detail."""
        self.passed += passed
        self.skipped += skipped
        self.failed.update({(section, name): detail for name, detail in failed.items()})

    @property
    def rate(self):
        """Passed of all that were not skipped, 0 to 1."""
        ran = self.passed + len(self.failed)
        return self.passed / ran if ran else 0.0

    def summary(self):
        """The counts in a line, and the failures by name."""
        lines = [
            f"{self.suite}: {self.passed} of {self.passed + len(self.failed)} passed "
            f"({100 * self.rate:.2f} %, at least {100 * PASS_RATE_MIN:.0f} % wanted), {self.skipped} skipped with a reason"
        ]
        for (section, name), detail in self.failed.items():
            lines.append(f"  failed: [{section}] {name}: {detail.strip()[:300]}")
        return "\n".join(lines)
