"""When prisms pay: strict prisms against ALPS orders, if sharing links costs run time.

The test of Enos 2014, section III.B, as a replay: jobs of both classes of Table II in waves, on
Blue Waters in the steady state of a scheduler that uses prisms (docs/guide/replay.md, "Shared
links"), for several slowdowns and seeds. Writes the tables of docs/studies/sharing.md.

    python scripts/study_sharing.py [--seeds N ..] [--num-jobs N]
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from draw_log import draw_log, nodes_by_class
from generate_snapshots import load_workload
from study import Column, Record, Study, groups, percent, table, timed, where
from topoplace.snapshot.machines import load_torus, prepare_empty
from topoplace.solving import Options
from topoplace.study.replay import MIXES, Replay, Setup, run_method, with_intensive
from topoplace.study.replay.log import (
    ApplicationFigures,
    JobRecord,
    by_application,
    efficiency_of,
)
from topoplace.study.replay.torus import begun_at, leaving_job

SLOWDOWNS = (0, 10, 25, 50)
"""Percent by which communication takes longer for each other job on a link."""

PRISMS, ORDER = "best-fit", "alps-2y"
WHOLE = ", whole queue"
APPLICATIONS = (
    *("Changa", "Chroma", "DNS-DISTUF", "MILC", "NAMD", "NWChem", "PSDNS", "QMCPACK"),
    *("SpecFEM3D_Globe", "WRF"),
)
"""Of Table II."""

MACHINE, CLASSES = "blue_waters", ("xe", "xk")
WAVE = 1200
"""Seconds between two waves of submissions."""


@cache
def setup_of(num_jobs: int, load: float, seed: int, limit: float) -> Setup:
    """Return the machine in its steady state, and a log in waves; 90 % of its jobs communicate.

    The steady state is that of prisms after as many jobs of another log, half of which have
    started.
    """
    empty = prepare_empty(load_torus(MACHINE))
    nodes, table_ii = nodes_by_class(empty, CLASSES), load_workload()
    before, jobs = (
        with_intensive(
            draw_log(table_ii, nodes, num_jobs, load, one, wave=WAVE), 90, MIXES["B"], one
        )
        for one in (1000 + seed, seed)
    )
    options = Options(time_limit=limit, seed=seed)
    first = Replay(Setup(empty, before, options=options), PRISMS)
    first.run(until=before[num_jobs // 2].submitted)
    state, leaving = begun_at(first.snapshot("steady"))
    running = [leaving_job(state, one, ends, MIXES["B"], jobs) for one, ends in leaving]
    return Setup(state, jobs, options=options, running=running)


def replayed(case: tuple[str, int, int], num_jobs: int, load: float, limit: float) -> Record:
    """Replay the log of a seed through a method at a slowdown.

    How full the machine is counts up to the last submission: after that it only empties.
    """
    method, sharing, seed = case
    setup = replace(
        setup_of(num_jobs, load, seed, limit), sharing=sharing, whole_queue=method.endswith(WHOLE)
    )
    run, seconds = timed(lambda: run_method(setup, method.removesuffix(WHOLE)))
    last = max(job.submitted for job in setup.jobs)
    until = [moment for moment in run.timeline if moment.at <= last]
    found = efficiency_of(run.records, until, run.num_nodes)
    figures = by_application(run.records)
    talking = [r for r in run.records if r.job.patterns]
    weights = [r.job.nodes * r.job.seconds for r in talking]
    slow = [float(r.slowdown) for r in talking]
    several = [f for f in figures if f.variation is not None]
    alike = one_shape(run.records)
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
        one_shape=alike,
        wait=run.metrics.wait / 3600 / len(run.records),
        seconds=seconds,
        **{f"efficiency_{name}": _efficiency(figures, name) for name in APPLICATIONS},
        **{f"variation_{name}": _variation(figures, name) for name in APPLICATIONS},
    )


def one_shape(records: Sequence[JobRecord]) -> float:
    """Return the mean CoV of the run times of jobs of one size and shape (Enos 2014, Figure 6)."""
    found: dict[object, list[float]] = {}
    for record in records:
        if record.prism is not None and record.job.patterns:
            shape = record.job.application, record.job.nodes, record.prism.extents
            found.setdefault(shape, []).append(float(record.slowdown))
    several = [own for own in found.values() if len(own) > 1]
    if not several:
        return 0.0
    spreads = [float(np.std(own, ddof=1) / np.mean(own)) for own in several]
    return float(np.average(spreads, weights=[len(own) for own in several]))


def _efficiency(figures: Sequence[ApplicationFigures], name: str) -> float:
    """Return the part of E_AVE that an application has."""
    own = [f for f in figures if f.application == name and f.efficiency is not None]
    usage = [f.usage for f in own]
    return float(np.average([f.efficiency for f in own], weights=usage)) if own else np.nan


def _variation(figures: Sequence[ApplicationFigures], name: str) -> float:
    """Return the mean CoV of the run times of the jobs of an application of one size."""
    own = [f for f in figures if f.application == name and f.variation is not None]
    weights = [f.num_jobs for f in own]
    return float(np.average([f.variation for f in own], weights=weights)) if own else np.nan


# ---- Tables --------------------------------------------------------------------------------------


def mean_of(rows: Sequence[Record], name: str) -> float:
    """Return the mean of a figure over seeds."""
    return float(np.nanmean([getattr(row, name) for row in rows]))


def _share(name: str, title: str) -> Column:
    return title, lambda rows: f"{percent(mean_of(rows, name))} ± {100 * _spread(rows, name):.1f}"


def _number(name: str, title: str) -> Column:
    return title, lambda rows: f"{mean_of(rows, name):.2f} ± {_spread(rows, name):.2f}"


def _spread(rows: Sequence[Record], name: str) -> float:
    values = [getattr(row, name) for row in rows]
    return float(np.nanstd(values, ddof=1)) if len(values) > 1 else 0.0


MEANS: list[Column] = [
    ("method", lambda rows: rows[0].method),
    ("slowdown %", lambda rows: rows[0].sharing),
    *(_share("utilisation", "utilisation"), _share("scheduling", "scheduling efficiency")),
    *(_share("application", "E_AVE"), _share("system", "system efficiency")),
    *(_number("slowdown", "run time / log"), _share("variation", "CoV of run times")),
    _number("wait", "mean wait, h"),
]
"""Means over seeds with standard deviations."""


def by_name(kinds: Sequence[Sequence[Record]]) -> str:
    """Return a table with a line per application: efficiency, system efficiency and CoV."""
    chosen = [rows for rows in kinds if rows[0].method == PRISMS or rows[0].sharing in (0, 25, 50)]
    chosen = [rows for rows in chosen if rows[0].method in (PRISMS, ORDER)]

    def cell(rows: Sequence[Record]) -> Column:
        title = f"{rows[0].method}, {rows[0].sharing} %"

        def value(name: str) -> str:
            efficiency = mean_of(rows, f"efficiency_{name}")
            system = efficiency * mean_of(rows, "scheduling")
            parts = efficiency, system, mean_of(rows, f"variation_{name}")
            return " / ".join(f"{100 * part:.0f}" for part in parts)

        return title, value

    return table(APPLICATIONS, [("application", str), *map(cell, chosen)], 1)


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
    options = {
        "seeds": [1, 2, 3, 4, 5],
        "num_jobs": 120,
        "load": 120.0,
        "exact": False,  # also whole queues by exact, with the limit for each
        "limit": 5.0,
        "jobs": 1,
    }
    study = Study("sharing", __doc__, given, **options)
    own = study.options
    runs = [(PRISMS, (0,)), (PRISMS + WHOLE, (0,)), (ORDER, SLOWDOWNS)]
    runs += [("exact" + WHOLE, (0,))] * own.exact
    cases = [
        (method, sharing, seed) for seed in own.seeds for method, every in runs for sharing in every
    ]
    given_to = partial(replayed, num_jobs=own.num_jobs, load=own.load, limit=own.limit)
    rows = study.measured(given_to, cases)
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
    shapes = f"Jobs of one application, size and shape have a CoV of {_alike(kinds)} in prisms."
    print(text, file=sys.stderr)
    study.page(table(kinds, MEANS, 1), by_name(kinds), text, shapes)


def _alike(kinds: Sequence[Sequence[Record]]) -> str:
    own = next(rows for rows in kinds if rows[0].method == PRISMS)
    return percent(mean_of(own, "one_shape"))


if __name__ == "__main__":
    main()
