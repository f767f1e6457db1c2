"""A replay as a text table, as CSV and as a document."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from fractions import Fraction

from topoplace.report.table import plain_table
from topoplace.study.replay.run import MethodRun

REPLAY_SCHEMA = "topoplace.replay/1"
_IN_HOURS = {
    "execution": "execution, h",
    "wait": "wait, h",
    "turnaround": "turnaround, h",
    "node_seconds": "node-hours",
}
_CSV_COLUMNS = (
    "method,job,nodes,intensive,submitted,start,end,wait,execution,log_execution,cost,default_cost"
)


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


def replay_csv(runs: Sequence[MethodRun]) -> str:
    """Return a line per run and job, in the order of the starts; times in seconds."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS.split(","))
    for run in runs:
        for record in run.records:
            job = record.job
            writer.writerow(
                [
                    run.method,
                    job.id,
                    job.nodes,
                    int(bool(job.patterns)),
                    job.submitted,
                    record.start,
                    record.end,
                    record.start - job.submitted,
                    record.execution,
                    job.seconds,
                    record.cost,
                    record.default_cost,
                ]
            )
    return stream.getvalue()


def metrics_documents(runs: Sequence[MethodRun]) -> list[dict[str, object]]:
    """Return the metrics of runs, ready for JSON, with percents saved against the first run.

    Times are in seconds, costs are texts such as ``37/4``.
    """
    documents: list[dict[str, object]] = []
    for run in runs:
        metrics = run.metrics
        documents.append(
            {
                "method": run.method,
                "jobs": metrics.num_jobs,
                "execution": metrics.execution,
                "wait": metrics.wait,
                "turnaround": metrics.turnaround,
                "node_seconds": metrics.node_seconds,
                "cost": str(metrics.cost),
                "percent_saved": None if run is runs[0] else run.improvements(runs[0]),
            }
        )
    return documents


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} %"
