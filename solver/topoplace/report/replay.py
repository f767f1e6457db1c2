"""A replay as a text table, as CSV and as a document."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Callable, Sequence
from fractions import Fraction

from topoplace.report.text import plain_table
from topoplace.snapshot.files import csv_of
from topoplace.study.replay.log import JobRecord, Moment, Protocol, Setup, by_application
from topoplace.study.replay.run import MethodRun
from topoplace.version import __version__

REPLAY_SCHEMA = "topoplace.replay/1"
_IN_HOURS = {
    "execution": "execution, h",
    "wait": "wait, h",
    "turnaround": "turnaround, h",
    "node_seconds": "node-hours",
}
_FIGURES = {
    "utilisation": "utilisation",
    "scheduling": "scheduling efficiency",
    "application": "application efficiency (E_AVE)",
    "system": "system efficiency",
    "fragmentation": "fragmentation",
}


_OF_JOB: dict[str, Callable[[MethodRun, JobRecord], object]] = {
    "method": lambda run, _: run.method,
    "job": lambda _, record: record.job.id,
    "nodes": lambda _, record: record.job.nodes,
    "intensive": lambda _, record: int(bool(record.job.patterns)),
    "submitted": lambda _, record: record.job.submitted,
    "start": lambda _, record: record.start,
    "end": lambda _, record: record.end,
    "wait": lambda _, record: record.start - record.job.submitted,
    "execution": lambda _, record: record.execution,
    "log_execution": lambda _, record: record.job.seconds,
    "cost": lambda _, record: record.cost,
    "default_cost": lambda _, record: record.default_cost,
    "application": lambda _, record: record.job.application or "",
    "class": lambda _, record: record.job.node_class or "",
    "priority": lambda _, record: record.job.priority,
    "prism": lambda _, record: "" if record.prism is None else record.prism.text,
    "slowdown": lambda _, record: f"{float(record.slowdown):.4f}",
}


def replay_table(runs: Sequence[MethodRun]) -> str:
    """Return the five metrics of runs as a table; the first run is what others improve on."""
    base = runs[0]
    header = ["metric", *(run.method for run in runs)]
    header += [f"{run.method} saves" for run in runs[1:]]
    saved = [run.improvements(base) for run in runs[1:]]
    rows = [["jobs", *(f"{run.metrics.num_jobs:,}" for run in runs), *("" for _ in saved)]]
    for name, title in (*_IN_HOURS.items(), ("cost", "cost")):
        unit = 3600 if name in _IN_HOURS else 1
        values = [float(getattr(run.metrics, name) / Fraction(unit)) for run in runs]
        gains = [_percent(gain[name]) for gain in saved]
        rows.append([title, *(f"{value:,.2f}" for value in values), *gains])
    return plain_table(header, rows, right=range(1, len(header)))


def efficiency_table(runs: Sequence[MethodRun]) -> str:
    """Return how well runs used a torus, as a table in percent."""
    header = ["figure", *(run.method for run in runs)]
    found = [run.efficiency for run in runs]
    rows = [
        [title, *(_percent(getattr(figures, name), times=100) for figures in found)]
        for name, title in _FIGURES.items()
    ]
    return plain_table(header, rows, right=range(1, len(header)))


def decisions_text(runs: Sequence[MethodRun]) -> str:
    """Return what came of asking the methods, for those where it is counted."""
    return "; ".join(f"{run.method} {run.decisions.text}" for run in runs if run.decisions)


def timeline_csv(runs: Sequence[MethodRun]) -> str:
    """Return a line per run and event: the machine from then on until the next one."""
    fields = [field.name for field in dataclasses.fields(Moment)]
    rows = (
        [run.method, *dataclasses.astuple(moment), run.num_nodes]
        for run in runs
        for moment in run.timeline
    )
    return csv_of(["method", *fields, "nodes"], rows)


def replay_csv(runs: Sequence[MethodRun]) -> str:
    """Return a line per run and job, in the order of the starts; times in seconds."""
    records = [(run, record) for run in runs for record in run.records]
    return csv_of(_OF_JOB, ([text(*of) for text in _OF_JOB.values()] for of in records))


def replay_document(setup: Setup, runs: Sequence[MethodRun]) -> dict[str, object]:
    """Return runs as a document ready for JSON, with percents saved against the first run.

    Times are in seconds, costs are texts such as ``37/4``. On a torus every run has its
    efficiencies, from 0 to 1, instead of a reference it ran against.
    """
    on_torus, options = setup.site.has_prisms, setup.options
    individual = setup.protocol is Protocol.INDIVIDUAL
    return {
        "schema": REPLAY_SCHEMA,
        "machine": setup.state.snapshot.name,
        "protocol": setup.protocol,
        "against": None if on_torus else setup.against,
        "interference": options.interference if on_torus else None,
        "fill_interior": setup.fill_interior,
        "sharing_percent": setup.sharing,
        "whole_queue": setup.whole_queue,
        "occupancy_percent": setup.occupancy if individual else None,
        "time_limit": setup.options.time_limit,
        "seed": setup.options.seed,
        "jobs": len(setup.jobs),
        "versions": {"topoplace": __version__, "python": platform.python_version()},
        "runs": [
            {
                "method": run.method,
                **dataclasses.asdict(run.metrics),
                "cost": str(run.metrics.cost),
                "percent_saved": None if run is runs[0] else run.improvements(runs[0]),
                **(_of_torus(run) if on_torus else {}),
                **({"decisions": dataclasses.asdict(run.decisions)} if run.decisions else {}),
            }
            for run in runs
        ],
    }


def _of_torus(run: MethodRun) -> dict[str, object]:
    """Return what a run on a torus has more."""
    applications = [dataclasses.asdict(one) for one in by_application(run.records)]
    return {"efficiency": _shares(run), "applications": applications}


def _shares(run: MethodRun) -> dict[str, float | None]:
    found = dataclasses.asdict(run.efficiency)
    return {name: None if share is None else float(share) for name, share in found.items()}


def _percent(value: float | Fraction | None, times: int = 1) -> str:
    return "-" if value is None else f"{float(times * value):.2f} %"
