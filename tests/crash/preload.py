"""Libraries that a server is started with to change what the system tells it: C files of this folder."""

import subprocess
from pathlib import Path


def compiled(name, folder):
    """The library made of `name`.c, in `folder`."""
    library = folder / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(source), "-ldl"], check=True)
    return library
