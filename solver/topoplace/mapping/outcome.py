"""What a mapping costs, and its form in a result document."""

from __future__ import annotations

from typing import Any

from topoplace.mapping.bounding import bounded
from topoplace.mapping.evaluate import Evaluation, evaluate, hop_bytes
from topoplace.mapping.mapped import Mapped
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Status
from topoplace.result.mapping import (
    Fraction,
    MappingFigures,
    MappingLevel,
    MappingLimits,
    MappingResult,
    MappingSolution,
)
from topoplace.solving import Options, Outcome
from topoplace.solving.frames import Frame


def worth(problem: MappingProblem, mapped: Mapped) -> list[int | None]:
    """Return the hop-bytes of a mapping."""
    return [hop_bytes(problem, mapped.nodes)]


def _document(
    problem: MappingProblem, outcome: Outcome, options: Options, common: dict[str, Any]
) -> MappingResult:
    solution = None
    mapped: Mapped | None = outcome.solution
    if mapped is not None:
        solution = MappingSolution(
            nodes=mapped.nodes.tolist(),
            figures=_figures(evaluate(problem, mapped.nodes)),
            layout=mapped.layout,
            optimum=mapped.optimum,
        )
    return MappingResult(
        **common | {"levels": [MappingLevel(**level) for level in common["levels"]]},
        limits=MappingLimits(
            time_limit=options.time_limit,
            hit=outcome.time_limit_hit and common["status"] is not Status.OPTIMAL,
        ),
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


FRAME = Frame((("hop-bytes", "min"),), bounded, worth, _document, heeds_clock=False)
