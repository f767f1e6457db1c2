"""A program as users write it, which `make check` holds against the types of the front door."""

from __future__ import annotations

import topoplace as tp


def told(progress: tp.Progress) -> None:
    print(progress.level, progress.objective, progress.gap)


def main() -> list[int]:
    model = tp.Model(tp.torus(4, 4, 4), name="typed")
    model.add_request("a", 8)
    result = tp.place(model, time_limit=20.0, callback=told)
    for start in result.placements:
        print(start.request, start.origin, start.extents, start.nodes, start.hosts)
    for level in result.levels:
        print(level.name, level.objective, level.bound)
    assert result.check().verified
    print(result.to_frame(), result.plot(), tp.compare(result, methods=["first-fit"]))
    mapped = tp.map(tp.grid(2, 2), on=result, job="a")
    return mapped.solution.nodes if mapped.solution else []
