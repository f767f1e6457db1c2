"""Which requests of a snapshot may start, as the checker reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from topoplace.certify.report import RefusedError
from topoplace.snapshot.schema import Request, Snapshot

Asked = TypeVar("Asked")


def held_in(snapshot: Snapshot) -> frozenset[str]:
    """Return the requests that an option holds: left out of the model, and not ignored."""
    return frozenset(
        one.request
        for one in snapshot.left_out
        if one.request is not None and one.option not in snapshot.ignored
    )


def candidates(snapshot: Snapshot) -> list[Request]:
    """Return the requests of the queue that nothing holds."""
    held = held_in(snapshot)
    return [request for request in snapshot.queue if request.id not in held]


def require_plain(snapshot: Snapshot, where: str) -> None:
    """Refuse two jobs with one id, and regions, which only machines with coordinates have."""
    names = [job.id for job in snapshot.running] + [one.id for one in snapshot.queue]
    if len({*names}) < len(names):
        raise RefusedError("two jobs of the instance have one id")
    if snapshot.regions:
        raise RefusedError(f"{where} has no regions")


def placed(placements: Sequence[Any], waiting: Mapping[str, Asked]) -> Iterator[tuple[Asked, Any]]:
    """Yield every placement with its request; refuse one whose request is none, or starts twice."""
    left = dict(waiting)
    for one in placements:
        if one.request not in left:
            raise RefusedError(f"{one.request} is no request that waits, or starts twice")
        yield left.pop(one.request), one


def told(snapshot: Snapshot) -> str:
    """Return how many requests are held, and which options are ignored.

    Raises
    ------
    RefusedError
        If something left out is of no request of the queue: whom it should hold is not known.
    """
    waiting = {request.id for request in snapshot.queue}
    for one in snapshot.left_out:
        if one.request is not None and one.request not in waiting:
            raise RefusedError(f"left_out names {one.request}, which is no request of the queue")
    held = held_in(snapshot) & waiting
    text = f"{len(held)} of {len(snapshot.queue)} held"
    named = {one.option for one in snapshot.left_out} & {*snapshot.ignored}
    return f"{text}; ignored: {', '.join(sorted(named))}" if named else text
