"""Map the shipped applications of objects by Mt-KaHyPar, and by ours in a time limit.

Each node takes 1.1 times its even share. Mt-KaHyPar maps them onto a torus at once, with each of
two presets, on two cores and as long as it takes; ours is what `topoplace map` does. Writes the
table of docs/studies/mtkahypar.md. The machine has to be idle.

    python scripts/study_mtkahypar.py [--seeds N ..] [--applications NAME ..] [--machines NAME ..]
        [--limit SECONDS]
"""

from __future__ import annotations

import itertools
import time

from study import Column, Record, Study, percent, table
from study_partitions import onto_torus
from topoplace.certify import check_document
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.objects.applications import problem_of, read_application
from topoplace.mapping.objects.settled import settled
from topoplace.mapping.onto import load_places
from topoplace.solving import Options, solve

APPLICATIONS = "matmul_8x8x8 milc_8x8x8x16 namd_apoa1 openatom_water_32m openatom_water_256m"
MACHINES = ["torus:4x4x4", "torus:8x8", "torus:2x4x8"]
PRESETS = {"DEFAULT": "default", "QUALITY": "quality"}
THREADS = 2


def measured(name: str, on: str, seed: int, limit: float) -> Record:
    """Map an application onto a machine by the library's presets and by ours."""
    problem = problem_of(read_application(name), load_places(on), "1.1")
    row = Record(application=name, machine=on, seed=seed, objects=problem.num_tasks)
    for preset, label in PRESETS.items():
        began = time.monotonic()
        cells = settled(problem, onto_torus(problem, seed, preset, THREADS))
        assert cells is not None, "a mapping of the library that has no room for all"
        setattr(row, label, hop_bytes(problem, problem.nodes_of(cells)))
        setattr(row, f"{label}_seconds", round(time.monotonic() - began, 1))
    result = solve(problem, "auto", Options(seed=seed, time_limit=limit))
    assert check_document(result).holds
    row.ours, row.bound, row.seconds = result.objective, result.bound, round(result.seconds, 1)
    return row


def in_time(row: Record) -> int:
    """Return the least cost of a preset that ends within the time limit of ours, as one does."""
    every = [(getattr(row, label), getattr(row, f"{label}_seconds")) for label in PRESETS.values()]
    return min(cost for cost, seconds in every if seconds <= row.limit)


def main(given: list[str] | None = None) -> None:
    """Measure, and write the records and the table."""
    own = {"applications": APPLICATIONS.split(), "machines": MACHINES}
    study = Study("mtkahypar", __doc__ or "", given, seeds=[4], limit=30.0, **own)
    chosen, rows = study.options, []
    for each in itertools.product(chosen.applications, chosen.machines, chosen.seeds):
        row = measured(*each, chosen.limit)
        row.limit = chosen.limit
        print(row, flush=True)
        rows.append(row)
        study.write(rows)
    columns: list[Column] = ["application", "machine", "seed"]
    for label in PRESETS.values():
        columns += [label, (f"{label}, s", f"{label}_seconds")]
    columns += ["ours", ("ours, s", "seconds"), "bound"]
    columns += [("below", lambda row: percent(1 - row.ours / in_time(row)))]
    study.page(table(rows, columns, 2), title="Mt-KaHyPar")


if __name__ == "__main__":
    main()
