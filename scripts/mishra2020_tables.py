"""The study of Mishra 2020 as tables, ours beside what the paper published for Theta."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

DEFAULT_HOURS = {"execution": 2189, "wait": 45303}
TABLE_3 = {
    ("execution", "RHVD"): (1740, 1700, 1663),
    ("execution", "RD"): (1810, 1731, 1706),
    ("wait", "RHVD"): (31190, 34539, 33092),
    ("wait", "RD"): (34901, 35874, 31809),
}
"""Hours of greedy, balanced, adaptive in continuous runs (table 3, row 2)."""
TABLE_4 = {"RHVD": [9.65, 9.65, 9.65], "RD": [13.56, 13.56, 13.56]}
"""Percent saved in execution time in individual runs (table 4, row 2)."""
SECTION_6_2 = {"A": 5.89, "B": 8.92, "C": 12.49, "D": 7.94, "E": 11.11}
"""Average improvement of execution time, over the three algorithms."""
SECTION_6_4 = {"RD": 15.88, "RHVD": 17.84, "binomial": 15.87}
"""Average reduction of the cost of communication, over the three algorithms."""
PUBLISHED = ("greedy", "balanced", "adaptive")


@dataclass(frozen=True)
class Row:
    """One run; `saved` and `mean_job_gain` are percents against Slurm's default."""

    nodes_per_leaf: int
    protocol: str
    patterns: str
    seed: int
    method: str
    jobs: int
    execution_hours: float
    wait_hours: float
    turnaround_hours: float
    node_hours: float
    cost: float
    saved: dict[str, float | None]
    mean_job_gain: float | None

    @property
    def title(self) -> str:
        """Which run it is."""
        return (
            f"{self.nodes_per_leaf} per leaf, {self.protocol}, {self.patterns}, "
            f"seed {self.seed}, {self.method}"
        )


Figure = Callable[[Row], float | None]
T = TypeVar("T")


def tables(rows: Sequence[Row]) -> str:
    """Return the tables as Markdown; the CSV has the rest."""
    table_3 = {
        metric: {
            name: [100 * (1 - hours / DEFAULT_HOURS[metric]) for hours in TABLE_3[metric, name]]
            for name in ("RHVD", "RD")
        }
        for metric in DEFAULT_HOURS
    }
    average = {name: [value] for name, value in SECTION_6_2.items()}
    cost = {name: [value] for name, value in SECTION_6_4.items()}
    continuous = [row for row in rows if row.protocol == "continuous"]
    pure = [row for row in continuous if row.patterns in SECTION_6_4]
    individual = [row for row in rows if row.protocol != "continuous"]
    return "\n\n".join(
        [
            "### Continuous runs: percent of the total execution time saved",
            _table(continuous, lambda row: row.saved["execution"], table_3["execution"] | average),
            "### Continuous runs: percent of the total wait time saved",
            _table(pure, lambda row: row.saved["wait"], table_3["wait"]),
            "### Continuous runs: percent of the turnaround time saved",
            _table(pure, lambda row: row.saved["turnaround"], {}),
            "### Continuous runs: percent of the node-hours saved",
            _table(pure, lambda row: row.saved["node_seconds"], {}),
            "### Continuous runs: percent of the cost of communication saved",
            _table(pure, lambda row: row.saved["cost"], cost),
            "### Individual runs: percent of a job's execution time saved, mean over jobs",
            _table(individual, lambda row: row.mean_job_gain, TABLE_4 | average),
        ]
    )


def _table(rows: Sequence[Row], figure: Figure, paper: Mapping[str, Sequence[float]]) -> str:
    methods = [name for name in _in_order(row.method for row in rows) if name != "default"]
    average = [name for name in methods if name in PUBLISHED]
    header = ["nodes per leaf", "runs", "patterns", "paper", *methods]
    if average:
        header.insert(4, "mean of " + ", ".join(average))
    lines = [header, ["---"] * len(header)]
    for per_leaf in _in_order(row.nodes_per_leaf for row in rows):
        for protocol in _in_order(row.protocol for row in rows):
            for patterns in _in_order(row.patterns for row in rows):
                of = {
                    method: [
                        figure(row)
                        for row in rows
                        if (row.nodes_per_leaf, row.protocol, row.patterns, row.method)
                        == (per_leaf, protocol, patterns, method)
                    ]
                    for method in methods
                }
                means = [_mean(of[name]) for name in average]
                cells = [str(per_leaf), protocol, patterns]
                cells.append(" / ".join(f"{value:.1f}" for value in paper.get(patterns, [])))
                if average:
                    cells.append(_percent(_mean(means)))
                lines.append(cells + [_spread(of[name]) for name in methods])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _in_order(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _spread(values: Sequence[float | None]) -> str:
    """Return the mean over the seeds, and the least and the largest."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return _percent(_mean(known))
    return f"{_percent(_mean(known))} ({min(known):.1f} to {max(known):.1f})"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
