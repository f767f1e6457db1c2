"""Modules that are imported when they are first needed."""

from __future__ import annotations

import gc
import importlib

TYPE_CHECKING = False  # typing is not imported: until `__main__` runs, Ctrl-C shows a traceback
if TYPE_CHECKING:
    from types import ModuleType


def imported(name: str) -> ModuleType:
    """Return a module, which is imported without a look for garbage.

    Imports make hundreds of thousands of objects that stay: looking for garbage among them takes an
    eighth of the time until a first answer.
    """
    looks = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        if looks:
            gc.enable()
