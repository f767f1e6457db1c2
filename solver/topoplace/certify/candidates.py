"""Which requests of a snapshot may start, as the checker reads it."""

from __future__ import annotations

from topoplace.certify.report import RefusedError
from topoplace.snapshot.schema import Request, Snapshot


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
