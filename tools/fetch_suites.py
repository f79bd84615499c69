#!/usr/bin/env python3
"""Fetches the test suites of other projects that tests/conformance runs, once, into a folder of the build cache.

They stay other people's work under their own licences: they are downloaded, run, and never copied into this repository.
Redis's own suite comes from the source package of the distribution (any mirror that apt already knows), the suites of
redis-py and fakeredis from their source distributions.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

# A name changes when what is made of a download does: "redis-2" is the second way of preparing it.
REDIS_PY, FAKEREDIS = "8.1.0", "2.40.0"
SOURCES = Path("/etc/apt/sources.list.d")


def run(*command, **options):
    """Runs a command without input; its output is shown only when it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f">> error: {' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


def source_entries():
    """The distribution's own package sources, rewritten to ask for source packages; other people's are left out."""
    entries = []
    for path in sorted(SOURCES.glob("*.sources")):
        text = path.read_text("utf-8")
        if "debian" in path.name or "ubuntu" in path.name:
            lines = ("Types: deb-src" if line.startswith("Types:") else line for line in text.splitlines())
            entries.append((path.name, "\n".join(lines) + "\n"))
    listed = Path("/etc/apt/sources.list")
    if listed.exists():
        lines = [line.replace("deb ", "deb-src ", 1) for line in listed.read_text("utf-8").splitlines()]
        lines = [line for line in lines if line.startswith("deb-src ")]
        entries.append(("plain.list", "\n".join(dict.fromkeys(lines)) + "\n"))
    return entries


def fetch_redis(into):
    """Redis's suite, through apt with lists of its own, so that the machine's package sources stay as they are."""
    work = into / "apt"
    shutil.rmtree(work, ignore_errors=True)
    (work / "lists" / "partial").mkdir(parents=True)
    (work / "parts").mkdir()
    for name, text in source_entries():
        (work / "parts" / name).write_text(text, "utf-8")
    options = ["-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={work / 'parts'}"]
    options += ["-o", f"Dir::State::lists={work / 'lists'}", "-o", f"Dir::Cache={work}", "-qq"]
    if os.geteuid() == 0:
        options += ["-o", "APT::Sandbox::User=root"]  # the cache may lie where apt's own user cannot go
    run("apt-get", *options, "update", cwd=work)
    run("apt-get", *options, "source", "--download-only", "redis", cwd=work)
    archive = next(work.glob("redis_*.orig.tar.*"))
    unpack(archive, into / "redis")
    shutil.rmtree(work)
    link_tools(into / "redis" / "src")
    forgive_encodings(into / "redis" / "tests" / "unit")


def forgive_encodings(folder):
    """Settings of Redis's in-memory encodings mean nothing to a store with another one. The suite sets them between
    its cases, where a refusal would end a whole file, so a refusal is passed over there."""
    setting = re.compile(r"^(\s*)(r config set (?:hash|zset|set|list)-max-\S+ [^\n]*)$", re.MULTILINE)
    for path in folder.rglob("*.tcl"):
        text = path.read_text("utf-8", "surrogateescape")
        path.write_text(setting.sub(r"\1catch {\2}", text), "utf-8", "surrogateescape")


def link_tools(folder):
    """The suite calls the benchmark and the command line tool where Redis's own build would have put them."""
    for tool in ("redis-benchmark", "redis-cli", "redis-server"):
        found = shutil.which(tool)
        if found:
            (folder / tool).unlink(missing_ok=True)
            (folder / tool).symlink_to(found)


def unpack(archive, target):
    """Unpacks an archive with one folder in it, as `target`."""
    shutil.rmtree(target, ignore_errors=True)
    staging = target.with_suffix(".new")
    shutil.rmtree(staging, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(staging)  # a source package of the distribution or an index, checked by apt or pip
    (folder,) = staging.iterdir()
    folder.rename(target)
    staging.rmdir()


def fetch_python(into, name, version):
    """A Python project's source distribution, which holds its tests."""
    work = into / "pip"
    work.mkdir(exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", f"{name}=={version}"]
    run(*pip, cwd=work)
    unpack(work / f"{name}-{version}.tar.gz", into / f"{name}-py")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True)
    into = parser.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    jobs = {
        "redis-2": lambda: fetch_redis(into),
        f"redis-py-{REDIS_PY}": lambda: fetch_python(into, "redis", REDIS_PY),
        f"fakeredis-{FAKEREDIS}": lambda: fetch_python(into, "fakeredis", FAKEREDIS),
    }
    for name, job in jobs.items():
        stamp = into / f"{name}.stamp"
        if not stamp.exists():
            print(f">> fetching the test suite of {name}", flush=True)
            job()
            stamp.touch()


if __name__ == "__main__":
    main()
