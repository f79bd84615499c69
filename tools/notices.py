"""Prints what is linked into the binary that others wrote: every crate with its version, licence and notices.

Apache-2.0, MIT and BSD ask that a binary comes with them. Equal texts are printed once. Crates that only build,
or only test, are left out.
"""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTICE = re.compile(r"^(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE)([-._].*)?$", re.IGNORECASE)
SOURCE_OF_PROGRAMS = (".rs", ".py", ".h", ".c", ".cc")


def cargo(*arguments):
    """What cargo says of the locked dependencies."""
    return subprocess.check_output(["cargo", *arguments, "--locked"], cwd=ROOT, text=True)


def linked():
    """Packages of others that the binary links, by name and version."""
    graph = json.loads(cargo("metadata", "--format-version", "1"))["packages"]
    known = {(package["name"], package["version"]): package for package in graph if package["source"]}
    tree = cargo("tree", "--package", "entremet", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}")
    named = {tuple(line.replace(" v", " ", 1).split()[:2]) for line in tree.splitlines() if line}
    return [known[package] for package in sorted(named) if package in known]


def notices(folder):
    """Files below a package's folder that are notices, C and C++ that it carries included."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(place) / name for name in sorted(names) if NOTICE.match(name) and not name.endswith(SOURCE_OF_PROGRAMS))


def main():
    theirs, texts = linked(), {}
    print("The entremet binary links these packages of others, and the standard library of Rust (MIT OR Apache-2.0):\n")
    for package in theirs:
        print(f"  {package['name']} {package['version']}: {package['license'] or 'see its notice'}")
    ours = [("uPlot", path) for path in (ROOT / "web" / "vendor").glob("*.LICENSE")]
    for owner, path in ours + [(f"{p['name']} {p['version']}", path) for p in theirs for path in notices(Path(p["manifest_path"]).parent)]:
        text = path.read_text("utf-8", "replace").strip()
        key = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
        texts.setdefault(key, (text, []))[1].append(owner)
    for text, owners in texts.values():
        print("\n" + "=" * 80)
        print(", ".join(dict.fromkeys(owners)))
        print("=" * 80 + f"\n\n{text}")


if __name__ == "__main__":
    main()
