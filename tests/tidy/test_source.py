"""House numbers and house words, over every Rust file."""

import re

import pytest
import source

from harness.paths import ROOT

FILE_LINES_MAX = 450
FUNCTION_LINES_MAX = 70
# The file-system shim talks to C++; the others are system calls that no library wraps. Each block says why it is sound.
MAY_BE_UNSAFE = ("crates/engine/src/files/shim/mod.rs", "crates/threads/src/schedule.rs", "crates/server/src/socket/round_trip.rs")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
UNFINISHED_CODE = re.compile(r"\b(unimplemented|todo|dbg)!")
SLEEP = re.compile(r"\bsleep(_until|_ms)?\s*\(")

FILES = source.rust_files()


def report(problems):
    assert not problems, "\n".join(problems)


def test_files_are_short():
    lengths = ((path, source.text(path).count("\n")) for path in FILES)
    report([f"{source.where(path)}: {lines} lines, at most {FILE_LINES_MAX}" for path, lines in lengths if lines > FILE_LINES_MAX])


def test_functions_are_short():
    report(
        [
            f"{path.relative_to(ROOT)}:{first}: {name} has {lines} lines, at most {FUNCTION_LINES_MAX}"
            for path in FILES
            for name, first, lines in source.functions(path)
            if lines > FUNCTION_LINES_MAX
        ]
    )


def test_nothing_is_left_unfinished():
    problems = []
    for path in FILES:
        problems += [f"{source.where(path, found.start())}: {found[0]}" for found in UNFINISHED.finditer(source.text(path))]
        problems += [f"{source.where(path, found.start())}: {found[0]}" for found in UNFINISHED_CODE.finditer(source.code(path))]
    report(problems)


def test_unsafe_stays_in_the_shim():
    problems = []
    for path in FILES:
        inside = str(path.relative_to(ROOT))
        if inside.startswith(MAY_BE_UNSAFE):
            continue
        problems += [
            f"{source.where(path, found.start())}: unsafe outside {MAY_BE_UNSAFE}"
            for found in re.finditer(r"\bunsafe\b(?!_)", source.code(path))
        ]
    report(problems)


def test_unsafe_says_why():
    problems = []
    for path in FILES:
        lines = source.text(path).splitlines()
        for found in re.finditer(r"\bunsafe\s*(\{|impl\b)", source.code(path)):
            number = source.line_of(path, found.start())
            if not any("SAFETY" in line for line in lines[max(0, number - 8) : number]):
                problems.append(f"{source.where(path, found.start())}: a // SAFETY: comment must say why this is sound")
    report(problems)


def test_tests_do_not_sleep():
    """A test that sleeps is slow when it passes and wrong when the machine is busy. Wait for the event instead. Examples measure."""
    report(
        [
            f"{source.where(path, found.start())}: a sleep in a test"
            for path in FILES
            if source.is_test(path) and "examples" not in path.parts
            for found in SLEEP.finditer(source.code(path))
        ]
    )


def test_scripted_tests_do_not_sleep():
    problems = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if re.search(r"\btime\.sleep\(|\bfrom time import .*\bsleep\b", line):
                problems.append(f"{path.relative_to(ROOT)}:{number}: a sleep in a test")
    report(problems)


def first_line(path):
    return next((line for line in source.text(path).splitlines() if line.strip()), "")


@pytest.mark.parametrize("crate", sorted(path.name for path in source.CRATES.iterdir() if path.is_dir()))
def test_rooms_have_an_essay(crate):
    """Every folder of a crate opens with what it is for: `//!` at the head of its mod.rs, lib.rs or main.rs."""
    problems = []
    for folder in [source.CRATES / crate / "src", *sorted((source.CRATES / crate / "src").rglob("*/"))]:
        if not any(folder.glob("*.rs")):
            continue
        heads = [folder / name for name in ("lib.rs", "main.rs", "mod.rs")] + [folder.with_suffix(".rs")]
        head = next((path for path in heads if path.exists()), None)
        if head is None or not first_line(head).startswith("//!"):
            problems.append(f"{folder.relative_to(ROOT)}: no essay (//!) at the head of {head.name if head else 'mod.rs'}")
    report(problems)


def test_every_file_says_what_it_is():
    ours = (path for path in FILES if not source.is_test(path))
    report([f"{source.where(path)}: no //! at its head" for path in ours if not first_line(path).startswith(("//!", "#!["))])


def test_names_of_files_say_one_thing():
    bad = re.compile(r"(^|_)(utils?|helpers?|misc|common|and)(_|$)")
    report([f"{source.where(path)}: what is it for?" for path in FILES if bad.search(path.stem)])
