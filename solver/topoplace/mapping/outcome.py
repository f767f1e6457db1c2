"""What a mapping costs, and its form in a result document."""

from __future__ import annotations

from topoplace.mapping.bounding import bounded
from topoplace.mapping.evaluate import Evaluation, evaluate, hop_bytes
from topoplace.mapping.mapped import Mapped
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Fraction
from topoplace.result.mapping import (
    MappingFigures,
    MappingLevel,
    MappingResult,
    MappingSolution,
)
from topoplace.solving.solve import Frame

OVERTIME_SECONDS = 0.4


def worth(problem: MappingProblem, mapped: Mapped) -> list[int | None]:
    """Return the hop-bytes of a mapping."""
    return [hop_bytes(problem, mapped.nodes)]


def _solution(problem: MappingProblem, mapped: Mapped) -> MappingSolution:
    return MappingSolution(
        nodes=mapped.nodes.tolist(),
        figures=_figures(evaluate(problem, mapped.nodes)),
        layout=mapped.layout,
        optimum=mapped.optimum,
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


def _facts(result: MappingResult) -> dict[str, int | None]:
    return {"max hops": None if result.solution is None else result.solution.figures.max_hops}


FRAME = Frame(
    (("hop-bytes", "min"),),
    bounded,
    worth,
    MappingResult,
    MappingLevel,
    _solution,
    lambda problem: problem.instance,
    facts=_facts,
    overtime=OVERTIME_SECONDS,
)
