"""Every experiment in its short form: it runs, judges what a short run can tell, and its report draws."""

import json
import re
import shutil
import subprocess
import tomllib

import pytest

from harness.paths import ROOT, SERVER

pytestmark = pytest.mark.ours

FOLDER = ROOT / "experiments"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/experiment.toml"))


def marked(name):
    """Where all time is simulated, others may use the machine meanwhile."""
    spec = tomllib.loads((FOLDER / name / "experiment.toml").read_text("utf-8"))
    simulated = name.endswith("-simulated") or spec["scenario"].get("program") == "rein"
    return pytest.param(name, marks=[pytest.mark.simulated] if simulated else [])


def drawn(report):
    """The report as a browser has it after its scripts ran."""
    browser = shutil.which("chromium")
    assert browser, "chromium is missing: make setup installs it"
    # Containers have no user namespaces for the sandbox and little shared memory; the page is ours.
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=5000"]
    command = [browser, *options, "--dump-dom", report.as_uri()]
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=120).stdout


@pytest.mark.parametrize("name", [marked(name) for name in NAMES])
def test_quick(name, tmp_path):
    command = [SERVER, "experiment", name, "--quick", "--out", str(tmp_path), "--experiments", str(FOLDER)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=240)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{name}: " in run.stdout and "targets met" in run.stdout

    result = json.loads((tmp_path / name / "result.json").read_text("utf-8"))
    spec = tomllib.loads((FOLDER / name / "experiment.toml").read_text("utf-8"))
    assert {verdict["pass"] for verdict in result["verdicts"]} == {True, None}
    assert all(verdict["not_judged"] for verdict in result["verdicts"] if verdict["pass"] is None)
    # With the mechanism switched off the same verdict is missed, or it shows nothing; a run too short to tell
    # the one is too short to tell the other.
    told = [one for one in result["verdicts"] if not (one["not_judged"] or "").startswith("too short a run")]
    met_anyway = [one["target"] for one in told if one["off"] and not one["off"]["fails"]]
    assert met_anyway == []
    # A variant may be for points that the short form leaves out.
    points = set(spec.get("quick", {}).get("points", []))
    played = [one for one in spec["variant"] if not points or points & set(one.get("points", points))]
    variants = [variant["name"] for variant in played]
    runs = result["figures"]["runs"]
    assert {one["variant"] for one in runs} == set(variants)
    for one in runs:
        observed = one["observed"]
        # A program may have figures of its own instead of tenants.
        served = sum(tenant["total"]["rate_per_s"] for tenant in observed["tenants"])
        assert served > 0 or observed["figures"], f"{one['variant']}/{one['point']} served nothing"

    # The scripts' own text says what they would draw, or why they would not.
    body = re.sub(r"<script\b.*?</script>", "", drawn(tmp_path / name / "report.html"), flags=re.DOTALL)
    assert "cannot be drawn" not in body
    assert body.count("<canvas") >= len(spec["plot"])
