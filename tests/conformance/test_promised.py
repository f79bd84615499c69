"""What the project promises to have, it has."""

import re

import pytest
import reference

from harness.paths import ROOT

pytestmark = pytest.mark.ours


def test_every_promised_command_is_there(target):
    missing = reference.promised() - reference.known(target.port)
    assert not missing, f"COMMAND does not name {sorted(missing)}"


def test_what_is_documented_is_there_and_the_other_way_round(target):
    """docs/reference/commands.md and COMMAND name the same commands."""
    page = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8").partition("## What is not supported")[0]
    documented = {name.lower() for name in re.findall(r"^\| `([A-Z][A-Z._-]*)[ `]", page, re.MULTILINE)}
    known = reference.known(target.port)
    assert documented == known, f"only documented: {sorted(documented - known)}; only there: {sorted(known - documented)}"
