"""Documents: links lead somewhere, and nothing names the machine that it was written on."""

import re
import subprocess

from harness.paths import ROOT

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
# Folders of one machine. Spelt in two parts, so that this file does not find itself.
MACHINE = re.compile(r"(?<![\w.$}-])/(" + "wor" + "k|" + "roo" + r"t)/[\w.]")
TEXT = {".rs", ".toml", ".md", ".py", ".sh", ".c", ".go", ".java", ".mjs", ".json", ".txt", ".xml", ".ini", ".yml", ".svg", ""}
WIDTH = 100
# Pages that a program writes: its tables and what stands over them are as long as they are.
WRITTEN = re.compile(r"is\s+written\s+from\s+the\s+code")
COMMENT = re.compile(r"^\s*//[/!]?")
NOT_OURS = {"target", "node_modules", ".git", "Cargo.lock", "package-lock.json", "LICENSE", "go.sum"}


def own_files():
    """What is, or would be, committed: everything that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    ).stdout  # fmt: skip
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file() and not NOT_OURS & set(path.relative_to(ROOT).parts)]


def anchors(path):
    """The anchors that headings of a Markdown file get."""
    headings = re.findall(r"^#+\s+(.*?)\s*$", FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_resolve():
    problems = []
    for path in (path for path in own_files() if path.suffix == ".md"):
        for target in LINK.findall(FENCE.sub("", path.read_text("utf-8"))):
            place, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            found = (path.parent / place).resolve() if place else path
            if not found.exists():
                problems.append(f"{path.relative_to(ROOT)}: {target} does not exist")
            elif anchor and found.suffix == ".md" and anchor not in anchors(found):
                problems.append(f"{path.relative_to(ROOT)}: {place or 'this file'} has no heading #{anchor}")
    assert not problems, "\n".join(problems)


def prose(path):
    """The lines of a page or of comments, without fenced parts, tables and headings; numbered."""
    fenced = False
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        words = COMMENT.sub("", line).strip() if path.suffix == ".rs" else line.strip()
        if path.suffix == ".rs" and not COMMENT.match(line):
            fenced = False
            continue
        if words.startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not words.startswith(("|", "#")):
            yield number, line


def test_prose_wraps():
    """Long lines of prose are hard to read beside code, and hard to compare."""
    pages = (path for path in own_files() if path.suffix in (".md", ".rs") and "vendor" not in path.parts)
    problems = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} characters, at most {WIDTH}"
        for path in pages
        if path.suffix == ".rs" or not WRITTEN.search(path.read_text("utf-8"))
        for number, line in prose(path)
        if len(line) > WIDTH and " " in line.strip()[10:]
    ]
    assert not problems, "\n".join(problems)


def test_no_machine_is_named():
    problems = []
    for path in (path for path in own_files() if path.suffix in TEXT):
        text = path.read_text("utf-8", "replace")
        problems += [
            f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}: {found[0]}" for found in MACHINE.finditer(text)
        ]
    assert not problems, "\n".join(problems)


def test_first_papers_are_there():
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "entremet.toml"):
        assert (ROOT / name).exists(), f"{name} is missing"
