"""Where the program vernier is."""

from __future__ import annotations

import os
import shutil
import sys

from .trial import VernierError


def find() -> str:
    """The program: $VERNIER, the one in this wheel, or the one on PATH."""
    carried = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "vernier")
    if os.environ.get("VERNIER"):
        return os.environ["VERNIER"]
    if os.access(carried, os.X_OK):
        return carried
    # The script of this wheel has the same name, and would start itself.
    for folder in os.get_exec_path():
        path = shutil.which("vernier", path=folder)
        if path and not _is_script(path):
            return path
    raise VernierError(
        "there is no program vernier: this wheel was built for another platform. "
        "Build it (make build in the repository) and put it on PATH, or name it in the variable VERNIER"
    )


def _is_script(path: str) -> bool:
    with open(path, "rb") as f:
        return f.read(2) == b"#!"


def main() -> None:
    """Become the program, as the command of this wheel."""
    try:
        path = find()
    except VernierError as e:
        sys.exit(f"vernier: {e}")
    os.execv(path, ["vernier", *sys.argv[1:]])
