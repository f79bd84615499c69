"""The common suite, run by each real client over each protocol that it speaks."""

import pytest
from compare import problem
from programs import SUITE, case_names, report, runs

from harness.server import ALPHA, BETA

EXPECTED = {case["name"]: case["steps"] for case in SUITE}
ALL = [(client, protocol, case) for client, protocol in runs() for case in case_names(client)]


@pytest.fixture(scope="module")
def secret(server):
    """Something of the tenant beta, which no client that is the tenant alpha may see or harm."""
    with server.wire(BETA) as wire:
        wire.ask("SET", "secret-of-beta", "kept")
    return "secret-of-beta"


@pytest.mark.parametrize("client,protocol,case", ALL, ids=lambda value: str(value))
def test_case(server, secret, client, protocol, case):
    said = report(client, protocol, server.port, ALPHA.name, ALPHA.password)
    assert case in said, f"{client} ended with status {said['status']} before this case: {said['stderr'][-3000:]}"
    line = said[case]
    if "problem" in line:
        assert line["problem"] == ""
        return
    steps = EXPECTED[case]
    assert len(line["replies"]) == len(steps)
    problems = [
        f"{' '.join(map(str, args))[:100]}: {wrong}"
        for (args, expected), got in zip(steps, line["replies"])
        if (wrong := problem(expected, got))
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.ours
def test_the_other_tenant_was_untouched(server, secret):
    """Runs last in this file: by now every client has flushed, as alpha, many times."""
    with server.wire(BETA) as wire:
        assert wire.ask("GET", secret) == b"kept"
        assert wire.ask("KEYS", "*") == [secret.encode()]
