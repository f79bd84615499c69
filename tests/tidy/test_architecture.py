"""Who may import whom, and what `policy` may never touch. The drawing is in ARCHITECTURE.md."""

import re
import tomllib

import pytest
import source

# An edge that is missing here is an error; adding one is a decision, to be argued in
# docs/decisions/.
ALLOWED = {
    "policy": set(),
    "settings": {"policy"},
    "telemetry": set(),
    "threads": set(),
    "stage": {"policy"},
    "device": {"policy", "settings"},
    "engine": {"policy", "telemetry", "threads"},
    "workload": {"front", "policy", "settings", "telemetry", "threads"},
    "resp": set(),
    "commands": {"resp", "telemetry"},
    "front": {"commands", "resp", "telemetry"},
    "server": {"resp", "commands", "engine", "front", "settings", "stage", "telemetry", "threads", "policy"},
    "cluster": {"resp", "commands", "engine", "stage", "telemetry", "policy"},
    # What takes many machines is shown by the simulator, what takes none by a measurement in the
    # process.
    "experiment": {"sim", "device", "stage", "workload", "settings", "telemetry", "policy"},
    "sim": {"settings", "policy", "workload"},
    "entremet": {"server", "front", "cluster", "sim", "experiment", "workload", "device", "engine", "settings", "stage", "telemetry", "threads", "policy"},
}
# The rooms of a crate: each imports those before it. A room that is missing here is an error, as an
# edge back is.
ROOMS = {
    "engine": [
        "error",
        "types",
        "record",
        "naming",
        "device",
        "meter",
        "options",
        "work",
        "tries",
        "pool",
        "files",
        "memory",
        "log",
        "keyspace",
        "access",
        "phases",
        "expiry",
        "engine",
    ],
    "server": [
        "seldom",
        "socket",
        "watchdog",
        "data",
        "slo",
        "tenants",
        "device",
        "upstream",
        "options",
        "shared",
        "session",
        "unit",
        "connection",
        "core",
        "provide",
        "control",
        "source",
        "server",
    ],
}
# Policy answers from its arguments alone, so that a simulation runs what ships and a seed repeats a
# run.
FORBIDDEN_IN_POLICY = {
    r"\bInstant\s*::\s*now\b|\bSystemTime\b": "a clock; take `now` as an argument",
    r"\bstd\s*::\s*thread\b|\bthread\s*::\s*(spawn|sleep)": "a thread",
    r"\b(Mutex|RwLock|Condvar|Atomic\w+|OnceLock|LazyLock|thread_local)\b": "shared state",
    r"\bstd\s*::\s*(io|fs|net|process|env)\b": "input or output",
    r"\be?print(ln)?!|\bdbg!|\b(tracing|log)\s*::|\b(info|warn|debug|trace|error)!\s*\(": "logging; return an explanation",
    r"\bthread_rng\b|\brand\s*::\s*(rng|random)\b|\bfrom_entropy\b|\bfrom_os_rng\b|\bOsRng\b": "ambient randomness",
    r"\bstd\s*::\s*collections\s*::\s*(\{[^}]*\b)?Hash(Map|Set)\b|\bRandomState\b": "a randomly ordered map",
    r"\basync\s+fn\b|\.await\b|\btokio\b": "asynchrony",
}


def manifests():
    return {path.parent.name: tomllib.loads(path.read_text("utf-8")) for path in sorted(source.CRATES.glob("*/Cargo.toml"))}


MANIFESTS = manifests()


def ours(manifest, kind):
    """The crates of this workspace that a manifest depends on."""
    return {name for name in manifest.get(kind, {}) if name in ALLOWED}


@pytest.mark.parametrize("crate", MANIFESTS)
def test_imports_point_one_way(crate):
    assert crate in ALLOWED, f"crates/{crate} has no place in the architecture yet: argue it and name it here"
    manifest = MANIFESTS[crate]
    tables = [manifest, *manifest.get("target", {}).values()]
    imports = set().union(*(ours(table, kind) for table in tables for kind in ("dependencies", "build-dependencies")))
    wrong = imports - ALLOWED[crate]
    assert not wrong, f"crates/{crate} may not import {sorted(wrong)}"


def homes(folder):
    """Where what a crate's root offers comes from."""
    for found in re.finditer(r"pub use (\w+)::([^;]+);", source.code(folder / "lib.rs")):
        yield from ((name, found[1]) for name in re.findall(r"\w+", found[2]))


def rooms_imported(path, folder):
    """Names of the crate's root that a file of it uses, with their positions."""
    code = source.without_test_modules(path)
    parts = path.relative_to(folder).with_suffix("").parts
    depth = len(parts) - (parts[-1] == "mod")
    for found in re.finditer(r"\bcrate::(?:\{([^}]*)\}|(\w+))|((?:\bsuper::)+)(\w+)", code):
        several, one, up, above = found.groups()
        if several:
            yield from ((part.split("::")[0].strip(), found.start()) for part in several.split(","))
        elif one or up.count("super::") >= depth:
            yield one or above, found.start()


@pytest.mark.parametrize("crate", ROOMS)
def test_rooms_import_one_way(crate):
    folder, rooms = source.CRATES / crate / "src", ROOMS[crate]
    home, problems = dict(homes(folder)), []
    for path in source.rust_files(f"crates/{crate}/src"):
        room = path.relative_to(folder).parts[0].removesuffix(".rs")
        if room == "lib" or source.is_test(path):
            continue
        assert room in rooms, f"crates/{crate}/src/{room} has no place among the rooms yet: argue it and name it here"
        allowed = set(rooms[: rooms.index(room) + 1])
        problems += [
            f"{source.where(path, position)}: `{room}` may not import `{name}`" for name, position in rooms_imported(path, folder) if name and home.get(name, name) not in allowed
        ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("crate", MANIFESTS)
def test_nobody_imports_the_binary(crate):
    for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
        assert "entremet" not in MANIFESTS[crate].get(kind, {})


@pytest.mark.parametrize("crate", MANIFESTS)
def test_workspace_lints_apply(crate):
    assert MANIFESTS[crate].get("lints", {}).get("workspace") is True, f"crates/{crate}: add [lints] workspace = true"


def test_policy_is_pure():
    problems = []
    for path in source.rust_files("crates/policy/src"):
        if source.is_test(path):
            continue
        code = source.without_test_modules(path)
        for pattern, what in FORBIDDEN_IN_POLICY.items():
            problems += [f"{source.where(path, found.start())}: {what}" for found in re.finditer(pattern, code)]
    assert not problems, "\n".join(problems)


def test_policy_depends_on_little():
    """What policy links decides what policy can do by accident."""
    allowed = {"rand", "rand_xoshiro", "foldhash", "hashbrown", "smallvec", "thiserror", "serde", "slab", "microlp"}
    extra = set(MANIFESTS["policy"].get("dependencies", {})) - allowed
    assert not extra, f"crates/policy: {sorted(extra)} must first be argued for"


# What a server links, and what the simulator does.
PLAYERS = {"server": ("server", "engine", "stage"), "simulator": ("sim",)}
SHARED_ROW = re.compile(r"^\| `(\w+)` \| (yes|no) \| (yes|no) \|", re.MULTILINE)


def grouped(code, position):
    """The items at the top of the braces that open at a position."""
    inside = code[position + 1 : source.closing(code, position)]
    while re.search(r"\{[^{}]*\}", inside):
        inside = re.sub(r"\{[^{}]*\}", "", inside)
    return re.findall(r"(?:^|,)\s*(\w+)", inside)


def names_after(prefix, code):
    """The names that stand behind a path: `policy::name` and `policy::{name, name::other}`."""
    for found in re.finditer(rf"\b{prefix}\s*::\s*(\{{|\w+)", code):
        yield from grouped(code, found.start(1)) if found[1] == "{" else [found[1]]


def policy_modules():
    """The modules of `policy`, and which of them each name at its top belongs to."""
    code = source.code(source.CRATES / "policy" / "src" / "lib.rs")
    modules = re.findall(r"^pub mod (\w+);", code, re.MULTILINE)
    home = {module: module for module in modules}
    for module in modules:
        home |= dict.fromkeys(names_after(rf"pub use {module}", code), module)
    return modules, home


def run_by(crates):
    """The modules of `policy` that the crates name outside of tests."""
    _, home = policy_modules()
    files = [path for path in source.rust_files(*(f"crates/{crate}/src" for crate in crates)) if not source.is_test(path)]
    return {home[name] for path in files for name in names_after("policy", source.without_test_modules(path))}


def test_the_table_of_what_is_shared_is_true():
    rows = SHARED_ROW.findall((source.ROOT / "ARCHITECTURE.md").read_text("utf-8"))
    told = {module: {"server": server == "yes", "simulator": simulator == "yes"} for module, server, simulator in rows}
    runs = {player: run_by(crates) for player, crates in PLAYERS.items()}
    modules, _ = policy_modules()
    assert told == {module: {player: module in runs[player] for player in PLAYERS} for module in modules}


def test_imports_are_found_however_they_are_written():
    code = "use policy::{dispatch::{Limit, Next}, Nanos}; use policy::cost::device::Op; fn f(a: policy::Cost) {}"
    assert sorted(names_after("policy", code)) == ["Cost", "Nanos", "cost", "dispatch"]
