"""Libraries that a program is started with to change what the system tells it or does for it: C files beside the tests."""

import subprocess

from harness.paths import TESTS


def compiled(name, folder):
    """The library made of `name`.c, in `folder`."""
    library = folder / f"{name}.so"
    [source] = TESTS.glob(f"*/{name}.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(source), "-ldl"], check=True)
    return library
