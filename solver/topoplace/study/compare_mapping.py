"""Several mapping methods on the same instances, held against the best bound on hop-bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from topoplace.errors import InputError, TopoplaceError
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Proof
from topoplace.result.mapping import MappingResult
from topoplace.solving import Options, method_of, methods, solve
from topoplace.study.mapping_subject import MappingSubject, load_mapping_subject
from topoplace.study.ranking import ranked, ratios, summaries

MAPPING_COMPARISON_SCHEMA = "topoplace.mapping-comparison/1"

ONLY_BY_NAME = ("auto", "given", "scotch")
"""Methods a comparison runs only when asked: one that picks among others, an external program."""

EXACT_SECONDS = 60.0
"""Time limit of `exact` without another: it goes on until the optimum is proven."""

UNSUITED = "unsuited"
"""Status of a method that is not made for an instance, such as a fold of a cube."""

MappingKeep = Callable[[MappingResult, MappingProblem], None]
"""Takes every result behind the rows, in their order, before the next instance is begun."""


@dataclass(frozen=True)
class MappingComparisonRow:
    """One mapping method on one instance.

    Attributes
    ----------
    objective
        Hop-bytes; null if the method found no mapping.
    bound
        The highest lower bound of all methods run on the instance; null if none proved one.
    gap
        ``(objective - bound) / max(1, objective)``.
    max_hops
        Most hops of a message.
    status
        As in results, or `UNSUITED`.
    proof
        What supports the bound, whichever method found it.
    rank
        By objective; null without a mapping.
    ratio
        Objective over the least objective of all methods.
    """

    instance: str
    method: str
    objective: int | None
    bound: int | None
    gap: float | None
    seconds: float | None
    max_hops: int | None
    status: str
    proof: str
    rank: int | None = None
    ratio: float | None = None

    @property
    def conforming(self) -> bool:
        """Every mapping obeys the rules: places are all there is to obey."""
        return self.objective is not None


def compare_mapping_files(
    paths: Sequence[str | Path],
    methods: Sequence[str] | None,
    options: Options | None = None,
    keep: MappingKeep | None = None,
) -> list[MappingComparisonRow]:
    """Compare mapping methods on instance or result files (see `compare_mappings`)."""
    subjects = [load_mapping_subject(path) for path in paths]
    return compare_mappings(subjects, methods, options, keep)


def compare_mappings(
    subjects: Iterable[MappingSubject],
    methods: Sequence[str] | None = None,
    options: Options | None = None,
    keep: MappingKeep | None = None,
) -> list[MappingComparisonRow]:
    """Run mapping methods on instances and return one row for each pair.

    Parameters
    ----------
    subjects
        Instances. The result that came along with one stands for its method.
    methods
        Names of registered methods; default all but those of `ONLY_BY_NAME`, and for
        applications that are no grids all but those that need one. Methods that are not made for
        an instance get the status `UNSUITED` there.
    options
        Time limit for each solve, and seed.
    keep
        Called with every result and its problem: results are large, and not held here.

    Raises
    ------
    InputError
        If a method does not exist or is named twice.
    TopoplaceError
        If a mapping beats a proven bound: then one of the two is wrong.
    """
    options = options or Options()
    _check_names(methods or ())
    rows: list[MappingComparisonRow] = []
    for subject in subjects:
        results: dict[str, MappingResult | None] = {}
        if subject.result is not None:
            results[subject.result.method] = subject.result
        for name in _default_names(subject.problem) if methods is None else methods:
            if name not in results:
                results[name] = _solved(subject.problem, name, options)
        # Unsuited methods last: rows and results kept stay in the same order.
        own = [result for result in results.values() if result is not None]
        rows += _rows(subject.name, own, [name for name in results if results[name] is None])
        if keep is not None:
            for result in own:
                keep(result, subject.problem)
    return rows


def mapping_rows_document(rows: Sequence[MappingComparisonRow]) -> dict[str, object]:
    """Return rows, and what they say of each method, as a document ready for JSON."""
    return {
        "schema": MAPPING_COMPARISON_SCHEMA,
        "rows": [dataclasses.asdict(row) for row in rows],
        "methods": [dataclasses.asdict(summary) for summary in summaries(rows)],
    }


def _check_names(methods: Sequence[str]) -> None:
    for idx, name in enumerate(methods):
        method_of("mapping", name)
        if name in methods[:idx]:
            raise InputError("each method once", field="methods", value=name)


def _default_names(problem: MappingProblem) -> list[str]:
    return [
        name
        for name, method in methods("mapping").items()
        if name not in ONLY_BY_NAME and (problem.grid is not None or not method.needs_grid)
    ]


def _solved(problem: MappingProblem, method: str, options: Options) -> MappingResult | None:
    """Return the result of a method; None if it refuses the instance."""
    if method == "exact" and options.time_limit is None:
        options = replace(options, time_limit=EXACT_SECONDS)
    try:
        return solve(problem, method, options)
    except InputError:
        return None


def _rows(
    name: str, results: list[MappingResult], unsuited: list[str]
) -> list[MappingComparisonRow]:
    proven = [
        (result.bound, result.proof is Proof.CERTIFICATE, result.proof)
        for result in results
        if result.bound is not None and result.proof is not Proof.NONE
    ]
    bound, _, proof = max(proven, key=lambda item: item[:2], default=(None, False, Proof.NONE))
    rows = []
    for result in results:
        objective, gap = result.objective, None
        if objective is not None and bound is not None:
            if objective < bound:
                raise TopoplaceError(
                    f"{name}: {result.method} reaches {objective}, less than a bound of {bound} "
                    "that another method claims to have proved; please report this"
                )
            gap = (objective - bound) / max(1, objective)
        rows.append(
            MappingComparisonRow(
                instance=name,
                method=result.method,
                objective=objective,
                bound=bound,
                gap=gap,
                seconds=result.seconds,
                max_hops=None if result.solution is None else result.solution.figures.max_hops,
                status=result.status,
                proof=proof,
            )
        )
    rows += [
        MappingComparisonRow(name, method, None, bound, None, None, None, UNSUITED, proof)
        for method in unsuited
    ]
    values = [row.objective for row in rows]
    losses = [None if value is None else (value,) for value in values]
    return ranked(rows, losses, ratios(values))
