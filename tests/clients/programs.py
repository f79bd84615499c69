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


def runs():
    """Every (client, protocol) that is run."""
    return [(name, protocol) for name in COMMANDS for protocol in PROTOCOLS[name]]


def case_names(client):
    """The cases that `client` reports on."""
    return TYPED if client == "lettuce" else (*(case["name"] for case in SUITE), *TYPED)


@cache
def report(client, protocol, port, user, password):
    """Runs a client program once, and returns its lines by case."""
    environment = {
        **os.environ,
        "SUITE_FILE": str(HERE / "suite.json"),
        "SUITE_PORT": str(port),
        "SUITE_USER": user,
        "SUITE_PASSWORD": password,
        "SUITE_PROTOCOL": str(protocol),
    }
    done = subprocess.run(
        COMMANDS[client], env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return {"status": done.returncode, "stderr": done.stderr.decode("utf-8", "replace")} | {
        line["case"]: line for line in lines
    }
