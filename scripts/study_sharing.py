"""When prisms pay: strict prisms against ALPS orders, if sharing links costs run time.

Replays logs drawn from Enos 2014, Table II, on Blue Waters (docs/guide/replay.md, "Shared links"),
for several slowdowns and seeds. Writes the tables of docs/studies/sharing.md.

    python scripts/study_sharing.py [--seeds N ..] [--num-jobs N]
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Sequence
from functools import partial

import numpy as np

from study import Column, Record, Study, groups, percent, table, where
from study_blue_waters import setup_of
from topoplace.study.replay import run_method
from topoplace.study.replay.log import ApplicationFigures, by_application

SLOWDOWNS = (0, 5, 10, 25, 50, 100, 200)
"""Percent by which communication takes longer for each other job on a link."""

PRISMS, ORDER = "best-fit", "alps-2y"
APPLICATIONS = ("MILC", "NAMD", "NWChem", "PSDNS")
"""Of Table II, those that Enos 2014 singles out."""


def replayed(case: tuple[str, int, int], num_jobs: int, load: float) -> Record:
    """Replay the log of a seed through a method at a slowdown."""
    method, sharing, seed = case
    setup = dataclasses.replace(setup_of(num_jobs, load, 1.0, seed), sharing=sharing)
    run = run_method(setup, method)
    found, figures = run.efficiency, by_application(run.records)
    talking = [r for r in run.records if r.job.patterns]
    weights = [r.job.nodes * r.job.seconds for r in talking]
    slow = [float(r.slowdown) for r in talking]
    several = [f for f in figures if f.variation is not None]
    return Record(
        method=method,
        sharing=sharing,
        seed=seed,
        utilisation=float(found.utilisation or 0),
        scheduling=float(found.scheduling or 0),
        application=float(found.application or 0),
        system=float(found.system or 0),
        slowdown=float(np.average(slow, weights=weights)),
        variation=float(
            np.average([f.variation for f in several], weights=[f.num_jobs for f in several])
        ),
        **{name: _of(figures, name) for name in APPLICATIONS},
    )


def _of(figures: Sequence[ApplicationFigures], name: str) -> float:
    """Return the mean slowdown of the jobs of an application."""
    own = [f for f in figures if f.application == name]
    return float(np.average([f.slowdown for f in own], weights=[f.num_jobs for f in own]))


# ---- Tables --------------------------------------------------------------------------------------


def mean_of(rows: Sequence[Record], name: str) -> float:
    """Return the mean of a figure over seeds."""
    return float(np.mean([getattr(row, name) for row in rows]))


def _share(name: str, title: str) -> Column:
    return title, lambda rows: f"{percent(mean_of(rows, name))} ± {100 * _spread(rows, name):.1f}"


def _number(name: str, title: str) -> Column:
    return title, lambda rows: f"{mean_of(rows, name):.2f} ± {_spread(rows, name):.2f}"


def _spread(rows: Sequence[Record], name: str) -> float:
    values = [getattr(row, name) for row in rows]
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


MEANS: list[Column] = [
    ("method", lambda rows: rows[0].method),
    ("slowdown %", lambda rows: rows[0].sharing),
    *(_share("utilisation", "utilisation"), _share("scheduling", "scheduling efficiency")),
    *(_share("application", "E_AVE"), _share("system", "system efficiency")),
    *(_number("slowdown", "run time / log"), _share("variation", "CoV of run times")),
]
"""Means over seeds with standard deviations."""

BY_APPLICATION: list[Column] = [*MEANS[:2], *(_number(name, name) for name in APPLICATIONS)]
"""Run times over those of the log, by application."""


def break_even(rows: Sequence[Record]) -> tuple[float, float] | None:
    """Return the slowdown at which both have the same system efficiency, and the speedup there.

    Between two slowdowns it is interpolated. The speedup is that of E_AVE by prisms.
    """
    (prisms,) = where(rows, method=PRISMS)
    orders = sorted(where(rows, method=ORDER), key=lambda row: row.sharing)
    for low, high in itertools.pairwise(orders):
        if low.system > prisms.system >= high.system:
            part = (low.system - prisms.system) / (low.system - high.system)
            application = low.application + part * (high.application - low.application)
            at = low.sharing + part * (high.sharing - low.sharing)
            return at, prisms.application / application
    return None


def main(given: Sequence[str] | None = None) -> None:
    """Replay, and write the tables."""
    options = {"seeds": [1, 2, 3, 4, 5], "num_jobs": 200, "load": 120.0, "jobs": 1}
    study = Study("sharing", __doc__, given, **options)
    own = study.options
    cases = [
        (method, sharing, seed)
        for seed in own.seeds
        for method, every in ((PRISMS, (0,)), (ORDER, SLOWDOWNS))
        for sharing in every
    ]
    rows = study.measured(partial(replayed, num_jobs=own.num_jobs, load=own.load), cases)
    study.write(rows)
    kinds = [
        own for same in groups(rows, "method").values() for own in groups(same, "sharing").values()
    ]
    found = [break_even(same) for same in groups(rows, "seed").values()]
    known = [one for one in found if one is not None]
    text = "No slowdown that was tried makes both equal."
    if known:
        ats, gains = zip(*known, strict=True)
        text = (
            f"Both have the same system efficiency at a slowdown of {np.mean(ats):.1f} % "
            f"(mean; {min(ats):.1f} to {max(ats):.1f} % over {len(known)} of {len(found)} seeds). "
            f"There applications run {100 * (np.mean(gains) - 1):.0f} % faster in prisms "
            f"({100 * (min(gains) - 1):.0f} to {100 * (max(gains) - 1):.0f} %)."
        )
    print(text, file=sys.stderr)
    study.page(table(kinds, MEANS, 1), table(kinds, BY_APPLICATION, 1), text)


if __name__ == "__main__":
    main()
