"""The batch scripts as modules: they lie outside the package, and import each other."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
sys.path.append(str(SCRIPTS))


def script(name: str) -> ModuleType:
    """Return a script as a module."""
    return importlib.import_module(name)
