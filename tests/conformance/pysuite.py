"""Runs files of another project's pytest suite in a process of their own, against a running server."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Suite:
    """One project's suite: where it lies, which files cover what Entremet supports, how pytest is called for it."""

    name: str
    folder: Path
    files: tuple
    options: tuple = ()
    settings: tuple = ()
    environment: tuple = ()
    timeout_s: int = 290


def run(suite, files, port, skips=(), commands=()):
    """Runs `files`; returns {"passed": […], "failed": {case: text}, "skipped": […]} and the output."""
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch) / "results.json"
        settings = {"results": str(results), "skips": list(skips), "port": port, "commands": sorted(commands)}
        settings.update(suite.settings)
        options = [option.format(port=port) for option in suite.options]
        # The file is named in full, so that pytest does not fall back on our own pytest.ini.
        command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "--rootdir", ".", "-q", "-p", "suite_plugin"]
        command += ["-p", "no:cacheprovider", "-p", "no:warnings", "--tb=line", *options, *files]
        environment = {**os.environ, **dict(suite.environment), "PYTHONPATH": f"{HERE}:{suite.folder}", "SUITE_SETTINGS": json.dumps(settings)}
        environment.pop("PYTEST_CURRENT_TEST", None)
        try:
            done = subprocess.run(
                command,
                cwd=suite.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=int(os.environ.get("ENTREMET_SUITE_TIMEOUT_S", suite.timeout_s)),
                check=False,
            )
            output = done.stdout.decode("utf-8", "replace")
        except subprocess.TimeoutExpired as late:
            output = (late.stdout or b"").decode("utf-8", "replace") + "\nthe file did not end in time"
        if not results.exists():
            return {"passed": [], "failed": {"(the run itself)": output[-3000:]}, "skipped": []}, output
        return json.loads(results.read_text("utf-8")), output


def not_there(skips, results):
    """Names of a skip list that match no case: the suite has moved on, or somebody mistyped."""
    seen = {name for case in results["skipped"] for name in (case, case.partition("[")[0])}
    return sorted(set(skips) - seen)
