"""Solve one snapshot as `topoplace place` does, and write how its first level came about.

    python scripts/place_traced.py SNAPSHOT RESULT TRACE LIMIT INTERFERENCE

The trace is JSON: seconds of the solve, and ``[seconds, objective, bound]`` of the first level for
every change seen (a few times a second); its last entry is when that level ended.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import topoplace as tp


def main(snapshot: str, result: str, trace: str, limit: str, interference: str) -> None:
    """Solve, and write the result and the trace."""
    seen: list[tuple[str, float, int | None, int | None]] = []

    def watch(progress: Any) -> None:
        entry = progress.level, progress.objective, progress.bound
        if progress.level and (not seen or entry != (seen[-1][0], *seen[-1][2:])):
            seen.append((progress.level, round(progress.seconds, 2), *entry[1:]))

    found = tp.place(snapshot, time_limit=float(limit), interference=interference, callback=watch)
    found.save(result)
    level = found.levels[0]
    own = [*itertools.takewhile(lambda entry: entry[0] == level.name, seen)]
    after = seen[len(own)][1] if len(own) < len(seen) else round(found.seconds, 2)
    end = after, level.objective, level.bound
    Path(trace).write_text(
        json.dumps({"seconds": found.seconds, "trace": [*(entry[1:] for entry in own), end]})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
