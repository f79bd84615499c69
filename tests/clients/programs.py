"""The client programs: how each is started, and what it said."""

import json
import os
import subprocess
import sys
from functools import cache

from harness.paths import BUILD, TARGET, TESTS

HERE = TESTS / "clients"
SUITE = json.loads((HERE / "suite.json").read_text("utf-8"))
CLASSPATH = f"{BUILD}/java/clients.jar:{BUILD}/java/lib/*"
# A small heap and the plain compiler: these programs live for a second or two.
JAVA = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", CLASSPATH]

COMMANDS = {
    "redis-py": [sys.executable, str(HERE / "python_client.py")],
    "go-redis": [str(BUILD / "bin" / "client-go")],
    "ioredis": ["node", str(BUILD / "node" / "ioredis.mjs")],
    "node-redis": ["node", str(BUILD / "node" / "node-redis.mjs")],
    "jedis": [*JAVA, "entremet.clients.JedisSuite"],
    "lettuce": [*JAVA, "entremet.clients.LettuceSuite"],
    "redis-rs": [str(TARGET / "debug" / "entremet-client-suite")],
}
# redis-rs is built without TLS.
WITH_TLS = tuple(name for name in COMMANDS if name != "redis-rs")
# ioredis speaks RESP2 unless told otherwise per reply type; everybody else speaks both.
PROTOCOLS = {name: (2,) if name == "ioredis" else (2, 3) for name in COMMANDS}
TYPED = (
    "typed-set-get",
    "typed-hash",
    "typed-sorted-set",
    "typed-pipeline",
    "typed-watch",
    "typed-refused-password",
    "typed-many-connections",
)
CLUSTER = ("cluster-keys", "cluster-pipeline", "cluster-hash-tag", "cluster-to-the-end")


def runs():
    """Every (client, protocol) that is run."""
    return [(name, protocol) for name in COMMANDS for protocol in PROTOCOLS[name]]


def case_names(client):
    """The cases that `client` reports on."""
    return TYPED if client == "lettuce" else (*(case["name"] for case in SUITE), *TYPED)


def start(client, protocol, port, user, password, stop=None, ca=None):
    """Starts a client program: as a client of a cluster, which ends when the file `stop` is there, or of one server.

    With `ca` a client of a cluster speaks TLS, and trusts that certificate.
    """
    environment = {
        **os.environ,
        "SUITE_FILE": str(HERE / "suite.json"),
        "SUITE_PORT": str(port),
        "SUITE_USER": user,
        "SUITE_PASSWORD": password,
        "SUITE_PROTOCOL": str(protocol),
    }
    if stop:
        environment["SUITE_STOP"] = str(stop)
    if ca:
        environment["SUITE_CA"] = str(ca)
    return subprocess.Popen(
        COMMANDS[client], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def report_of(program):
    """Waits for the end of a client program, and returns its lines by case."""
    with program:
        try:
            stdout, stderr = program.communicate(timeout=120)
        finally:
            program.kill()
    lines = [json.loads(line) for line in stdout.splitlines() if line.startswith(b"{")]
    return {"status": program.returncode, "stderr": stderr.decode("utf-8", "replace")} | {
        line["case"]: line for line in lines
    }


@cache
def report(client, protocol, port, user, password):
    """Runs a client program once, and returns its lines by case."""
    return report_of(start(client, protocol, port, user, password))
