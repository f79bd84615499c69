"""The Debian package: made of the release binary, installed, run as its unit says, upgraded, removed and purged."""

import configparser
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess

import pytest

from harness.paths import ROOT
from harness.spare import Service, spare_machine
from harness.waiting import eventually

pytestmark = [pytest.mark.ours, pytest.mark.timeout(600)]
CONFIGURATION = "/etc/entremet/entremet.toml"
DATA = "/var/lib/entremet"
PACKAGE = "/srv/entremet.deb"
UNIT = "/lib/systemd/system/entremet.service"
READY = "entremet is ready"


def make(folder):
    """The package, as `make package` makes it but not compressed, which takes most of its time, and without debugging symbols."""
    if shutil.which("dh") is None:
        pytest.skip("needs debhelper (make setup)")
    quick = {"DPKG_DEB_COMPRESSOR_TYPE": "none", "DEB_BUILD_OPTIONS": "noautodbgsym", "PACKAGE_DIR": str(folder)}
    done = subprocess.run([ROOT / "tools" / "package.sh"], env={**os.environ, **quick}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (package,) = folder.glob("entremet_*.deb")
    return package


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return make(tmp_path_factory.mktemp("package") / "out")


@pytest.fixture
def spare(tmp_path, package):
    """A machine where the package lies ready, and nothing of it was ever installed. No systemd runs, as in a container."""
    with spare_machine(tmp_path / "spare") as machine:
        yield with_package(machine, package)


@pytest.fixture
def booted(tmp_path, package):
    """The same with systemd."""
    with spare_machine(tmp_path / "booted", systemd=True) as machine:
        yield with_package(machine, package)


def with_package(machine, package):
    dpkg(machine, "--purge", "entremet")
    machine.write(PACKAGE, package.read_bytes())
    return machine


def dpkg(spare, *arguments):
    """The manual's index, which is not ours, takes most of the time: no triggers."""
    return spare.ask("dpkg", "--no-triggers", *arguments)


def install(spare):
    dpkg(spare, "--install", PACKAGE)


def unit(spare):
    """The unit's [Service] section."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str
    parser.read_string(spare.ask("cat", UNIT))
    return parser["Service"]


def start(spare):
    """What systemd does of the unit: the check, then the server, as its user."""
    service = unit(spare)
    assert service["StateDirectory"] == "entremet"
    spare.ask(*shlex.split(service["ExecStartPre"]), user=service["User"])
    return Service(spare, shlex.split(service["ExecStart"]), service["User"], READY)


def redis(spare, *command):
    return spare.ask("redis-cli", "-p", "6380", *command)


def owner(spare, path):
    """Who owns it, and who may what."""
    return spare.ask("stat", "--format=%U:%G %a", path)


def test_the_same_binary_gives_the_same_package(package, tmp_path):
    once, again = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (package, make(tmp_path / "again")))
    assert once == again


def test_it_is_installed_run_upgraded_removed_and_purged(spare):
    install(spare)
    assert owner(spare, DATA) == "entremet:entremet 750"
    assert owner(spare, CONFIGURATION) == "root:entremet 640"
    shell = spare.ask("getent", "passwd", "entremet").split(":")[-1]
    assert shell == "/usr/sbin/nologin"
    assert "enabled" in spare.ask("systemctl", "is-enabled", "entremet.service")

    server = start(spare)
    assert redis(spare, "SET", "k", "kept") == "OK"
    assert server.stop() == 0, "".join(server.said)

    spare.ask("sed", "-i", '1i # the operator was here', CONFIGURATION)
    install(spare)
    assert spare.ask("head", "-1", CONFIGURATION) == "# the operator was here"
    assert owner(spare, CONFIGURATION) == "root:entremet 640"
    server = start(spare)
    assert redis(spare, "GET", "k") == "kept"
    assert server.stop() == 0, "".join(server.said)

    dpkg(spare, "--remove", "entremet")
    assert not spare.exists("/usr/bin/entremet")
    assert not spare.exists(UNIT)
    assert spare.exists(CONFIGURATION)
    assert spare.exists(f"{DATA}/tenants")

    dpkg(spare, "--purge", "entremet")
    assert not spare.exists(DATA)
    assert not spare.exists("/etc/entremet")
    assert spare.run("getent", "passwd", "entremet").returncode == 2
    assert spare.run("getent", "group", "entremet").returncode == 2
    left = spare.ask("find", "/etc", "/lib/systemd", "/usr/share", "/var/lib/systemd", "-xdev", "-name", "*entremet*")
    assert left == ""


def test_systemd_starts_it_restarts_it_at_an_upgrade_and_stops_it(booted):
    """With all that the unit forbids: a data directory or a file of the system that it lacks would show here."""
    install(booted)
    booted.ask("systemctl", "is-active", "entremet")
    assert eventually(lambda: redis(booted, "SET", "k", "kept")) == "OK"
    before = booted.ask("systemctl", "show", "--property=MainPID", "entremet")
    booted.ask("systemctl", "reload", "entremet")
    assert booted.ask("systemctl", "show", "--property=MainPID", "entremet") == before

    install(booted)
    assert eventually(lambda: redis(booted, "GET", "k")) == "kept"
    assert booted.ask("systemctl", "show", "--property=MainPID", "entremet") != before
    assert booted.ask("systemctl", "show", "--property=NRestarts", "entremet") == "NRestarts=0"

    dpkg(booted, "--purge", "entremet")
    assert booted.run("systemctl", "is-active", "entremet").returncode != 0
    assert "refused" in booted.run("redis-cli", "-p", "6380", "PING").stdout
    assert booted.run("getent", "passwd", "entremet").returncode == 2


def containerfile():
    """What the last stage of the Containerfile says, by instruction; lists as lists."""
    lines = (ROOT / "Containerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    pairs = (line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    said = {instruction: re.sub(r"^(--\S+\s+)*CMD\s+", "", value.strip()) for instruction, value in pairs}
    return {name: json.loads(value) if value.startswith("[") else value for name, value in said.items()}


def test_a_container_starts_and_tells_its_health(spare):
    install(spare)
    image = containerfile()
    assert spare.run(*image["HEALTHCHECK"], user=image["USER"]).returncode != 0
    server = Service(spare, image["ENTRYPOINT"] + image["CMD"], image["USER"], READY)
    spare.ask(*image["HEALTHCHECK"], user=image["USER"])
    assert redis(spare, "CONFIG", "GET", "dir").splitlines()[-1].startswith(image["VOLUME"])
    assert server.stop() == 0, "".join(server.said)


def test_a_purge_leaves_a_directory_that_the_operator_made_a_link(spare):
    install(spare)
    spare.ask("sh", "-c", f"mkdir /srv/entremet && touch /srv/entremet/kept && rmdir {DATA} && ln -s /srv/entremet {DATA}")
    dpkg(spare, "--purge", "entremet")
    assert spare.exists("/srv/entremet/kept")


def test_an_operator_who_removed_the_configuration_can_upgrade(spare):
    install(spare)
    spare.ask("rm", CONFIGURATION)
    install(spare)
    assert not spare.exists(CONFIGURATION)


def test_a_processor_without_its_instructions_is_refused_in_words(spare):
    spare.write("/tmp/cpuinfo", b"processor\t: 0\nflags\t\t: fpu sse4_2 pclmulqdq abm movbe f16c fma bmi1\n")
    spare.ask("mount", "--bind", "/tmp/cpuinfo", "/proc/cpuinfo")
    refused = spare.run("dpkg", "--install", PACKAGE)
    assert refused.returncode != 0
    assert "this processor lacks avx2 bmi2;" in refused.stdout
    assert not spare.exists("/usr/bin/entremet")


def test_manual_completions_and_unit_are_such(spare):
    install(spare)
    subcommands = re.findall(r"^  ([a-z-]+) ", spare.ask("entremet", "--help").split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    assert "serve" in subcommands
    for name in set(subcommands) - {"help"}:
        assert spare.exists(f"/usr/share/man/man1/entremet-{name}.1.gz"), name
    bash = "/usr/share/bash-completion/completions/entremet"
    offered = f'. {bash}; COMP_WORDS=(entremet serve --con) COMP_CWORD=2; _entremet entremet --con serve; echo "${{COMPREPLY[*]}}"'
    assert spare.ask("bash", "-c", offered) == "--config"
    assert "hash-password" in spare.ask("cat", "/usr/share/fish/vendor_completions.d/entremet.fish")
    assert spare.ask("head", "-1", "/usr/share/zsh/vendor-completions/_entremet") == "#compdef entremet"
    if shutil.which("systemd-analyze"):
        assert spare.ask("systemd-analyze", "verify", "--man=no", UNIT) == ""
