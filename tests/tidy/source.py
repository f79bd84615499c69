"""Rust sources as the tidy checks see them: code with comments and literals blanked out, and its functions."""

import re
from functools import cache
from pathlib import Path

from harness.paths import ROOT

CRATES = ROOT / "crates"
# Comments and literals, in the order in which they must be tried. A lifetime ('a) is no character
# literal.
TOKEN = re.compile(
    r"""//[^\n]*
      | /\*.*?\*/
      | b?r(?P<fence>\#*)".*?"(?P=fence)
      | b?"(?:\\.|[^"\\])*"
      | b?'(?:\\[^']+|[^'\\\n])'""",
    re.VERBOSE | re.DOTALL,
)
FUNCTION = re.compile(r"\bfn\s+([A-Za-z_]\w*)")


def rust_files(*folders):
    """Every Rust file under `folders` (all our own code if none is given), sorted."""
    places = [ROOT / folder for folder in folders] or [CRATES, ROOT / "fuzz", ROOT / "tests" / "clients" / "rust"]
    return sorted(path for place in places for path in place.rglob("*.rs") if "target" not in path.parts)


def is_test(path):
    """True for code that only tests run: a `tests` folder, a file named for tests, an example."""
    inside = path.relative_to(ROOT)
    return bool({"tests", "examples", "benches"} & set(inside.parts)) or re.search(r"(^|_)tests?$", path.stem) is not None


@cache
def text(path):
    return path.read_text("utf-8")


@cache
def code(path):
    """The file with comments and literals replaced by blanks, line breaks kept, so that positions still hold."""
    return TOKEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text(path))


def line_of(path, position):
    return text(path).count("\n", 0, position) + 1


def where(path, position=0):
    """A place as a compiler would print it."""
    return f"{Path(path).relative_to(ROOT)}:{line_of(path, position)}"


def functions(path):
    """Every function with a body: (name, first line, number of lines)."""
    source = code(path)
    for found in FUNCTION.finditer(source):
        start, end = body(source, found.end())
        if start is not None:
            first = source.count("\n", 0, found.start()) + 1
            yield found[1], first, source.count("\n", found.start(), end) + 1


def body(source, position):
    """The span of the braces that follow a signature, or (None, None) for a declaration without one."""
    depth = 0
    for index in range(position, len(source)):
        char = source[index]
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == ";" and depth == 0:
            return None, None
        elif char == "{" and depth == 0:
            return index, closing(source, index)
    return None, None


def closing(source, opening):
    """The position of the brace that closes the one at `opening`."""
    depth = 0
    for index in range(opening, len(source)):
        depth += {"{": 1, "}": -1}.get(source[index], 0)
        if depth == 0:
            return index
    return len(source) - 1


def without_test_modules(path):
    """The code without `#[cfg(test)] mod … { … }`."""
    source = code(path)
    for found in reversed(list(re.finditer(r"#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))? )?mod \w+ \{", source))):
        end = closing(source, found.end() - 1)
        source = source[: found.start()] + re.sub(r"[^\n]", " ", source[found.start() : end + 1]) + source[end + 1 :]
    return source
