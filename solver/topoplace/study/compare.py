"""Several placement methods on the same snapshots, held against the best bound any can prove."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from topoplace.errors import InputError, TopoplaceError, unknown_name
from topoplace.result import Interference, PlacementResult, Proof
from topoplace.snapshot import SnapshotState
from topoplace.solving import Options, solve
from topoplace.solving import methods as known_methods
from topoplace.study.ranking import ranked, ratios, summaries
from topoplace.study.subject import Subject, load_subject

COMPARISON_SCHEMA = "topoplace.comparison/1"

ONLY_BY_NAME = ("minizinc",)
"""Methods a comparison runs only when asked: the reference model takes small instances alone."""

Keep = Callable[[PlacementResult, SnapshotState], None]
"""Takes every result behind the rows, in their order, before the next snapshot is begun."""


@dataclass(frozen=True)
class ComparisonRow:
    """One method on one snapshot.

    Attributes
    ----------
    objective
        Priority-weighted nodes started; null if the method found no placement.
    bound
        The best certified bound of all methods run on the snapshot; null if none proved one.
    gap
        ``(bound - objective) / max(1, objective)``. Negative only for a placement that does not
        conform: the bound does not hold for it.
    conforming
        Whether every job has a prism and no link breaks the interference rule.
    rank
        By objective among the conforming placements of the snapshot; null for others.
    ratio
        Best objective of these over this one, at least 1; null for others and if not finite.
    """

    snapshot: str
    method: str
    interference: Interference
    objective: int | None
    bound: int | None
    gap: float | None
    seconds: float
    jobs_started: int | None
    jobs_queued: int
    shared_links: int | None
    conforming: bool
    status: str
    proof: str
    rank: int | None = None
    ratio: float | None = None

    @property
    def instance(self) -> str:
        """Name of the snapshot."""
        return self.snapshot


def compare_files(
    paths: Sequence[str | Path],
    methods: Sequence[str] | None,
    options: Options,
    keep: Keep | None = None,
) -> list[ComparisonRow]:
    """Compare methods on snapshot or result files (see `compare`)."""
    return compare([load_subject(path) for path in paths], methods, options, keep)


def compare(
    subjects: Iterable[Subject],
    methods: Sequence[str] | None = None,
    options: Options | None = None,
    keep: Keep | None = None,
) -> list[ComparisonRow]:
    """Run methods on snapshots and return one row for each pair, in the order given.

    Parameters
    ----------
    subjects
        Snapshots. The result that came along with one stands for its method, which is not run
        again, if it was computed under the same interference rule.
    methods
        Names of registered methods; default all but those of `ONLY_BY_NAME`.
    options
        Time limit for each solve, interference rule and seed.
    keep
        Called with every result and its snapshot: results are large, and not held here.

    Raises
    ------
    InputError
        If a method does not exist or is named twice.
    TopoplaceError
        If a conforming placement beats a certified bound: then one of the two is wrong.
    """
    options = options or Options()
    names = _checked_names(methods)
    rows: list[ComparisonRow] = []
    for subject in subjects:
        results: dict[str, PlacementResult] = {}
        stored = subject.result
        if stored is not None and stored.limits.interference is options.interference:
            results[stored.method] = stored
        for name in names:
            if name not in results:
                results[name] = solve(subject.state, name, options)
        results |= {other.method: other for other in subject.others}
        rows += _rows(subject, list(results.values()))
        if keep is not None:
            for result in results.values():
                keep(result, subject.state)
    return rows


def rows_document(rows: Sequence[ComparisonRow]) -> dict[str, object]:
    """Return rows, and what they say of each method, as a document ready for JSON."""
    return {
        "schema": COMPARISON_SCHEMA,
        "rows": [dataclasses.asdict(row) for row in rows],
        "methods": [dataclasses.asdict(summary) for summary in summaries(rows)],
    }


def _checked_names(methods: Sequence[str] | None) -> list[str]:
    known = known_methods("placement")
    if methods is None:
        return [name for name in known if name not in ONLY_BY_NAME]
    for idx, name in enumerate(methods):
        if name not in known:
            raise unknown_name(name, known, field="methods")
        if name in methods[:idx]:
            raise InputError("each method once", field="methods", value=name)
    return list(methods)


def _rows(subject: Subject, results: list[PlacementResult]) -> list[ComparisonRow]:
    proven = [r.bound for r in results if r.proof is Proof.CERTIFICATE and r.bound is not None]
    bound = min(proven, default=None)
    rows = []
    for result in results:
        solution, objective = result.solution, result.objective
        conforming = solution is not None and solution.conforming
        if conforming and None not in (bound, objective) and objective > bound:  # type: ignore[operator]
            raise TopoplaceError(
                f"{subject.name}: {result.method} starts {objective}, more than a bound of {bound} "
                "that another method claims to have proved; please report this"
            )
        gap = None
        if bound is not None and objective is not None:
            gap = (bound - objective) / max(1, objective)
        rows.append(
            ComparisonRow(
                snapshot=subject.name,
                method=result.method,
                interference=result.limits.interference,
                objective=objective,
                bound=bound,
                gap=gap,
                seconds=result.seconds,
                jobs_started=None if solution is None else len(solution.placements),
                jobs_queued=len(subject.state.queue),
                shared_links=None if solution is None else solution.num_shared_links,
                conforming=conforming,
                status=result.status,
                proof=result.proof,
            )
        )
    values = [row.objective if row.conforming else None for row in rows]
    losses = [None if value is None else (-value,) for value in values]
    return ranked(rows, losses, ratios(values, larger_is_better=True))
