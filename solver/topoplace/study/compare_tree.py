"""Several allocation methods on the same tree snapshots, held against the best proven cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from topoplace.errors import InputError, TopoplaceError
from topoplace.result import Proof
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.tree_state import TreeState
from topoplace.solving import Options, method_names, method_of, solve
from topoplace.study.ranking import ranked, ratios, summaries
from topoplace.study.subject import TreeSubject, load_tree_subject

TREE_COMPARISON_SCHEMA = "topoplace.tree-comparison/1"
ONLY_BY_NAME = ("minizinc",)
TreeKeep = Callable[[AllocationResult, TreeState], None]
"""Takes every result behind the rows, in their order, before the next snapshot is begun."""


@dataclass(frozen=True)
class TreeComparisonRow:
    """One method on one snapshot of a tree machine.

    Attributes
    ----------
    nodes
        Priority-weighted nodes started.
    cost
        Total cost by eq. (6) of Mishra 2020; null if the method found no allocation.
    bound
        Best proven lower bound on the cost of as many nodes; null where no method proved one for
        that number of nodes.
    gap
        ``(cost - bound) / max(1, cost)``.
    rank
        By most nodes, then least cost; null without an allocation.
    ratio
        Cost over the least cost of those that start the most nodes; null for the others.
    """

    snapshot: str
    method: str
    nodes: int | None
    cost: Fraction | None
    bound: Fraction | None
    gap: float | None
    seconds: float
    jobs_started: int | None
    jobs_queued: int
    status: str
    proof: str
    rank: int | None = None
    ratio: float | None = None

    @property
    def instance(self) -> str:
        """Name of the snapshot."""
        return self.snapshot

    @property
    def conforming(self) -> bool:
        """Every allocation obeys the rules: jobs on a tree may share switches."""
        return self.cost is not None


def compare_tree_files(
    paths: Sequence[str | Path],
    methods: Sequence[str] | None,
    options: Options,
    keep: TreeKeep | None = None,
) -> list[TreeComparisonRow]:
    """Compare allocation methods on snapshot or result files (see `compare_trees`)."""
    return compare_trees([load_tree_subject(path) for path in paths], methods, options, keep)


def compare_trees(
    subjects: Iterable[TreeSubject],
    methods: Sequence[str] | None = None,
    options: Options | None = None,
    keep: TreeKeep | None = None,
) -> list[TreeComparisonRow]:
    """Run allocation methods on snapshots and return one row for each pair.

    Parameters
    ----------
    subjects
        Snapshots. The result that came along with one stands for its method.
    methods
        Names of registered methods; default all but those of `ONLY_BY_NAME`.
    options
        Time limit for each solve, and seed.
    keep
        Called with every result and its snapshot: results are large, and not held here.

    Raises
    ------
    InputError
        If a method does not exist or is named twice.
    TopoplaceError
        If an allocation beats a proven bound: then one of the two is wrong.
    """
    options = options or Options()
    names = _checked_names(methods)
    rows: list[TreeComparisonRow] = []
    for subject in subjects:
        results: dict[str, AllocationResult] = {}
        if subject.result is not None:
            results[subject.result.method] = subject.result
        for name in names:
            if name not in results:
                results[name] = solve(subject.state, name, options)
        results |= {other.method: other for other in subject.others}
        rows += _rows(subject.name, subject.state, list(results.values()))
        if keep is not None:
            for result in results.values():
                keep(result, subject.state)
    return rows


def tree_rows_document(rows: Sequence[TreeComparisonRow]) -> dict[str, object]:
    """Return rows and summaries of methods, ready for JSON; costs are texts such as ``37/4``."""
    return {
        "schema": TREE_COMPARISON_SCHEMA,
        "rows": [
            {
                name: str(value) if isinstance(value, Fraction) else value
                for name, value in dataclasses.asdict(row).items()
            }
            for row in rows
        ],
        "methods": [dataclasses.asdict(summary) for summary in summaries(rows)],
    }


def _checked_names(names: Sequence[str] | None) -> list[str]:
    if names is None:
        return [name for name in method_names("allocation") if name not in ONLY_BY_NAME]
    for idx, name in enumerate(names):
        method_of("allocation", name)
        if name in names[:idx]:
            raise InputError("each method once", field="methods", value=name)
    return list(names)


def _rows(name: str, state: TreeState, results: list[AllocationResult]) -> list[TreeComparisonRow]:
    bounds: dict[int, Fraction] = {}
    for result in results:
        proven = _cost_bound(result)
        if proven is not None and result.objective is not None:
            nodes = result.objective
            bounds[nodes] = max(bounds.get(nodes, proven), proven)
    rows = []
    for result in results:
        cost = None
        if result.solution is not None:
            cost = Fraction(result.solution.cost.numerator, result.solution.cost.denominator)
        bound = None if result.objective is None else bounds.get(result.objective)
        gap = None
        if cost is not None and bound is not None:
            if cost < bound:
                raise TopoplaceError(
                    f"{name}: {result.method} costs {cost}, less than a bound of {bound} that "
                    "another method claims to have proved; please report this"
                )
            gap = float((cost - bound) / max(Fraction(1), cost))
        level = result.levels[-1]
        rows.append(
            TreeComparisonRow(
                snapshot=name,
                method=result.method,
                nodes=result.objective,
                cost=cost,
                bound=bound,
                gap=gap,
                seconds=result.seconds,
                jobs_started=None if result.solution is None else len(result.solution.allocations),
                jobs_queued=len(state.requests),
                status=level.status,
                proof=level.proof,
            )
        )
    return _ranked(rows)


def _ranked(rows: list[TreeComparisonRow]) -> list[TreeComparisonRow]:
    """Rank by nodes, then cost; costs compare only between those that start the most nodes."""
    losses = [
        None if row.nodes is None or row.cost is None else (-row.nodes, row.cost) for row in rows
    ]
    most = max((row.nodes for row in rows if row.nodes is not None), default=None)
    return ranked(rows, losses, ratios([row.cost if row.nodes == most else None for row in rows]))


def _cost_bound(result: AllocationResult) -> Fraction | None:
    """Return the bound on the cost a result proved, if it did."""
    for level in result.levels:
        if level.name == "cost" and level.bound is not None and level.proof is not Proof.NONE:
            return Fraction(level.bound.numerator, level.bound.denominator)
    return None
