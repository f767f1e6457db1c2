"""Call a Python allocator in a process of its own, where it may hang, crash or print.

``python -m topoplace.study.external.call NAME SECONDS``: a snapshot document on stdin, a
placements document on stdout. Imports nothing but the standard library and the allocator.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys

GROUP = "topoplace.allocators"
"""The entry points that are allocators."""


def main(name: str, seconds: float) -> None:
    """Answer stdin with the placements of the allocator of this name."""
    # Output of the allocator, also from compiled code, must not end up in its answer.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)
        allocator = importlib.metadata.entry_points(group=GROUP)[name].load()
        json.dump(allocator(json.load(sys.stdin), seconds), answer)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
