"""A decision on a pod of cubes against the rules, and against the optimum.

It counts free cubes where a decision on a hierarchy counts domains: those used are the cubes that
were entirely free before and are not after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from topoplace.certify.cubes.check import require_free
from topoplace.certify.cubes.instance import Instance, Request, read_instance
from topoplace.certify.report import RefusedError
from topoplace.errors import number_of
from topoplace.formats.decisions import Taken
from topoplace.result.placement import CubesResult
from topoplace.study.audit.cases import Case


def chips_started(instance: Instance, case: Case) -> dict[str, list[int]]:
    """Return the chips that a case started, ascending, after checking each request on its own.

    Raises
    ------
    RefusedError
        For chips that are not the whole cubes or the part that the request needs, or not free.
    """
    found: dict[str, list[int]] = {}
    for name, taken in case.started:
        if name not in instance.by_id or name in found:
            raise RefusedError(f"{name} is no request that waits, or starts twice")
        chips = _chips(taken)
        if reason := _why_not(instance, instance.by_id[name], chips):
            raise RefusedError(f"{name}: {reason}")
        found[name] = chips
    require_free(instance, found)
    return found


def _chips(taken: Taken) -> list[int]:
    return sorted(int(chip) for own in taken.values() for chip in own)


def _why_not(instance: Instance, request: Request, chips: Sequence[int]) -> str | None:
    """Return why some chips are not a place of a request."""
    cubes = sorted({chip // instance.volume for chip in chips})
    if request.count:
        if len(cubes) != request.count or len(chips) != request.count * instance.volume:
            return (
                f"{number_of(len(chips), 'chip')} of {number_of(len(cubes), 'cube')}, "
                f"{request.count} whole ones are due"
            )
        return None
    if len(cubes) != 1:
        return f"a part of one cube is due, the chips are of {len(cubes)}"
    spots = ((shape, at) for shape in request.shapes for at in instance.origins(shape))
    if all(instance.chips(cubes[0], at, shape) != chips for shape, at in spots):
        return "the chips are no part of a shape that it takes, at a multiple of its extents"
    return None


def has_room(case: Case) -> bool:
    """Whether some request that was not started asks for no more chips than are free."""
    started, free = {name for name, _ in case.started}, int(read_instance(case.snapshot).free.sum())
    return any(r.nodes <= free for r in case.snapshot.queue if r.id not in started)


def cubes_taken(case: Case, result: CubesResult, left: int) -> tuple[int, int | None]:
    """Return how many free cubes a decision took, and the fewest that would have been enough."""
    whole = int(read_instance(case.snapshot).whole.sum())
    bound = result.levels[1].bound
    return whole - left, None if bound is None else whole - int(bound)
