"""From what a method found to a result: figures, bound and status."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from topoplace import __version__
from topoplace.mapping.evaluate import Evaluation, evaluate
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Proof, Status
from topoplace.result.mapping import (
    ClassOptimum,
    Fraction,
    LayoutModel,
    MappingCertificate,
    MappingFigures,
    MappingLevel,
    MappingLimits,
    MappingResult,
    MappingSolution,
)

if TYPE_CHECKING:
    from topoplace.mapping.best import BestSoFar


@dataclass(frozen=True)
class MapOptions:
    """What a user may set for a mapping.

    Attributes
    ----------
    time_limit
        Seconds.
    seed
        Of whatever a method draws at random.
    cell
        Tasks of a cell of `grid-order`, per virtual dimension.
    column_major
        Whether `grid-order` varies the first dimension fastest (``-C``).
    max_depth
        Largest extent of a pencil window along the pencils.
    start
        The mapping (node of every task) that a local search starts from.
    progress
        Takes a line of what a method has to say of its work; a method may call it often.
    best
        Takes every improvement (`report`); what it holds is the answer if the run is interrupted.
    """

    time_limit: float | None = None
    seed: int = 0
    cell: tuple[int, ...] | None = None
    column_major: bool = False
    max_depth: int | None = None
    start: IntArray | None = None
    progress: Callable[[str], None] | None = None
    best: BestSoFar | None = None

    def report(self, nodes: IntArray | None, value: int | None, bound: Bound | None = None) -> None:
        """Report an improvement (see `BestSoFar.report`) to whoever listens."""
        if self.best is not None:
            self.best.report(nodes, value, bound)

    def say(self, line: str) -> None:
        """Tell whoever listens what the method is doing."""
        if self.progress is not None:
            self.progress(line)


@dataclass(frozen=True)
class Bound:
    """A lower bound on the hop-bytes of any mapping; without certificate a search found it."""

    value: int
    certificate: MappingCertificate | None

    @property
    def proof(self) -> Proof:
        """What supports the bound."""
        return Proof.SEARCH if self.certificate is None else Proof.CERTIFICATE


def stronger(first: Bound | None, second: Bound | None) -> Bound | None:
    """Return the higher of two bounds; of equal ones that with a certificate, then the first."""
    known = [bound for bound in (first, second) if bound is not None]
    return max(known, key=lambda b: (b.value, b.certificate is not None), default=None)


@dataclass(frozen=True)
class MapOutcome:
    """What a method found: the node of every task, and what it knows of it.

    `nodes` is None if the method found no mapping; `hit` tells whether the time limit ended it;
    `bound` is what the method itself proved.
    """

    nodes: IntArray | None
    layout: LayoutModel | None = None
    optimum: ClassOptimum | None = None
    hit: bool = False
    bound: Bound | None = None


def result_of(
    problem: MappingProblem,
    outcome: MapOutcome,
    bound: Bound | None,
    method: str,
    options: MapOptions,
    seconds: float,
) -> MappingResult:
    """Return the result document; every figure is recomputed from the mapping itself."""
    objective, solution = None, None
    if outcome.nodes is not None:
        figures = evaluate(problem, outcome.nodes)
        objective = figures.hop_bytes
        solution = MappingSolution(
            nodes=outcome.nodes.tolist(),
            figures=_figures(figures),
            layout=outcome.layout,
            optimum=outcome.optimum,
        )
    value = bound.value if bound else None
    gap = None
    if objective is not None and value is not None:
        gap = abs(objective - value) / max(1, abs(objective))
    status = Status.UNKNOWN
    if objective is not None:
        status = Status.OPTIMAL if objective == value else Status.FEASIBLE
    proof = bound.proof if bound else Proof.NONE
    level = MappingLevel(
        status=status,
        objective=objective,
        bound=value,
        gap=gap,
        proof=proof,
        certificate=bound.certificate if bound else None,
    )
    return MappingResult(
        schema_version="topoplace.result/1",
        problem="mapping",
        method=method,
        status=status,
        objective=objective,
        bound=value,
        gap=gap,
        proof=proof,
        seconds=seconds,
        limits=MappingLimits(
            time_limit=options.time_limit, hit=outcome.hit and status is not Status.OPTIMAL
        ),
        seed=options.seed,
        versions={
            "topoplace": __version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("numpy", "ortools")},
        },
        levels=[level],
        solution=solution,
        instance=problem.instance,
    )


def _figures(found: Evaluation) -> MappingFigures:
    load = found.max_link_load
    return MappingFigures(
        hop_bytes=found.hop_bytes,
        hops=found.hops,
        off_router_messages=found.off_router_messages,
        off_router_bytes=found.off_router_bytes,
        max_hops=found.max_hops,
        histogram=list(found.histogram),
        max_link_load=None
        if load is None
        else Fraction(numerator=load.numerator, denominator=load.denominator),
    )
