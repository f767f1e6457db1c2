"""Solve one snapshot as `topoplace place` does, and write how its first level came about.

    python scripts/place_traced.py SNAPSHOT RESULT TRACE LIMIT INTERFERENCE

The trace is JSON: seconds of the solve, and ``[seconds, objective, bound]`` of the first level for
every change seen (a few times a second); its last entry is when that level ended.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import topoplace as tp


def main(snapshot: str, result: str, trace: str, limit: str, interference: str) -> None:
    """Solve, and write the result and the trace."""
    seen: list[list[Any]] = []
    first: list[str] = []

    def watch(progress: Any) -> None:
        if not progress.level or len(first) > 1:
            return
        if progress.level not in first:
            first.append(progress.level)
        figures = [progress.objective, progress.bound] if len(first) == 1 else seen[-1][1:]
        if not seen or figures != seen[-1][1:] or len(first) > 1:
            seen.append([round(progress.seconds, 2), *figures])

    found = tp.place(snapshot, time_limit=float(limit), interference=interference, callback=watch)
    found.save(result)
    level = found.levels[0]
    if len(first) < 2:
        seen.append([round(found.seconds, 2), None, None])
    seen[-1][1:] = [level.objective, level.bound]
    Path(trace).write_text(json.dumps({"seconds": found.seconds, "trace": seen}))


if __name__ == "__main__":
    main(*sys.argv[1:])
