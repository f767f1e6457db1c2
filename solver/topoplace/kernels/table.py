"""The table of kernels: which ones are called from Python, and with which types.

`scripts/build_kernels.py` records it from calls; nobody writes it by hand.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One kernel for one list of argument types.

    Attributes
    ----------
    module, function
        Where the kernel is.
    types
        Its argument types, as `topoplace.kernels.types` writes them.
    seconds
        About how long it takes to compile, with whatever it calls: the longest are begun first.
    """

    module: str
    function: str
    types: list[Any]
    seconds: float


def entries_of(group: str) -> list[Entry]:
    """Return the entries of a group."""
    return _table().get(group, [])


@functools.cache
def _table() -> dict[str, list[Entry]]:
    text = resources.files("topoplace.kernels").joinpath("table.json").read_text("utf-8")
    groups: dict[str, list[dict[str, Any]]] = json.loads(text)
    return {name: [Entry(**entry) for entry in entries] for name, entries in groups.items()}
