"""The placements at the optimum of some levels, as a document."""

from __future__ import annotations

from collections.abc import Sequence

from topoplace.errors import InputError, unknown_name
from topoplace.interrupts import heeded
from topoplace.packing.optima import Alternatives, all_optima
from topoplace.placement.engine import packed
from topoplace.placement.several import fields_of, searched, step_of
from topoplace.result.several import OPTIMA_SCHEMA, Optima
from topoplace.snapshot.machines import AnyState
from topoplace.solving import Options
from topoplace.solving.solve import Problem, frame_of, problem_of, require_levels

STARTED = "started"


def optima_of(
    instance: AnyState | Problem,
    most: int,
    chosen: Sequence[str] = (),
    distinct: str | None = None,
    options: Options | None = None,
) -> Optima:
    """Return placements that are as good as any other one, and whether these are all.

    Parameters
    ----------
    instance
        A prepared snapshot of a torus, mesh, hierarchy or pod of cubes, or a problem of one.
    most
        How many are enough.
    chosen
        The first levels of the problem, which count; all by default.
    distinct
        What tells placements apart: ``started``, on tori and meshes also ``prisms`` (there the
        default) and ``nodes``.
    options
        Time limit, rule of interference, seed, and who watches.

    Raises
    ------
    InputError
        If the levels are not the first of the problem, or its placements are not told apart so.
    """
    options = options or Options()
    problem = problem_of(instance, options)
    names = [name for name, _ in frame_of(problem.kind).levels(problem)]
    chosen = list(chosen) or names
    require_levels(chosen, names, problem.kind)
    if chosen != names[: len(chosen)]:
        expected = f"the first of {', '.join(names)}, in this order"
        raise InputError(expected, field="levels", value=",".join(chosen))
    if most < 1:
        raise InputError("at least 1", field="most", value=most)
    places = packed(problem).places
    distinct = distinct or next(iter(places), STARTED)
    if distinct not in (STARTED, *places):
        raise unknown_name(distinct, (STARTED, *places), field="distinct")
    with heeded():
        own, found, budget, seconds = searched(
            problem,
            options,
            Alternatives(len(chosen)),
            lambda own, budget, **how: all_optima(
                own.packing, len(chosen), most, budget, place_of=own.places.get(distinct), **how
            ),
        )
        shared = fields_of(problem, own, found, options, seconds)
        done = found.are_all or (found.are_best and len(found.points) >= most)
        shared["limits"]["hit"] = budget.is_over() and not done
        levels = frame_of(problem.kind).levels(problem)
        packing = own.packing
        queued = [q for q in range(len(packing.names)) if q not in packing.worthless]
        document = shared | {
            "schema_version": OPTIMA_SCHEMA,
            "chosen": chosen,
            "distinct": distinct,
            "equal": [[packing.names[q] for q in own] for own in packing.equal_groups(queued)],
            "asked": most,
            "complete": found.are_all,
            "rest": None if found.rest is None else step_of(packing, levels, found.rest),
        }
        return Optima(**document)
