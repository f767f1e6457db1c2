"""Requests that are held: those with an option that restricts them and that is not modelled.

A reader of another tool's file writes such options into the snapshot, as `left_out`. A request
that has one does not start, unless the option is among those that the snapshot says to ignore.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topoplace.errors import InputError, number_of, unknown_name
from topoplace.snapshot.schema import Counted, LeftOut, Order, Request, RunningJob, Snapshot
from topoplace.snapshot.value import valued_in

ORDER = "order"
"""The option, of no request, that others may not go before the first that waits."""

ASSIGNMENT = "assignment"
"""The option that holds requests where others have room in a domain, on hosts not known yet."""

NOT_SEEN = "not-seen"
"""The option, of no request, that stands for what a listing cannot show: no decision is blamed."""

FOR_NOW = "at-most-for-now"
"""The option, of no request, that the request named waits for so few domains only for a time."""

ELSEWHERE = "elsewhere"
"""The option, of no request, that a job runs on nodes that are not of the machine: its name first.
"""

OVER_CAPACITY = "over-capacity"
"""The option of a running job that some nodes have less than it and others there take."""

CONTRACT = "contract"
"""The option, of no request, that a scheduler has a rule of its own; it holds who breaks it."""

PREFERENCE = "preference"
"""The option, of no request, that a scheduler prefers some nodes to few domains."""

PREEMPTION = "preemption"
"""The option, of no request, that some could start if running jobs ended for them."""

PREEMPTION_RULES = "preemption-rules"
"""The option, of no request, that a scheduler may end fewer jobs, or others, for some requests."""

RESERVATION_END, RESERVATION_LATER = "reservation-end", "reservation-later"
"""Options, of no request, about later times alone: who starts now is as it is."""

OF_ITS_NODES = "stays"
"""The option of a running job that belongs to its nodes, so that nobody moves or ends it."""

PLANS = "plans"
"""The option, of no request, that a scheduler plans more than the nodes that a job would take."""

RESERVATIONS = "reservations"
"""The option, of no request, that a scheduler has more reservations than the order backfill."""

WINDOW = "window"
"""The option, of no request, that it is not seen within which time a scheduler reserves."""

_OF_BACKFILL = frozenset((RESERVATIONS, WINDOW))
"""Options, of no request, that say nothing about other orders."""

_MOST_NAMES = 3  # in a line

_MAX_NAME = 120  # of a job of which there are several, so that the others have room for a number

EVERY_OPTION = "all"
"""Stands for every option in a list of those to ignore."""


def holds_of(snapshot: Snapshot) -> dict[str, list[LeftOut]]:
    """Return by request, in the order of the queue, the options that hold it."""
    found: dict[str, list[LeftOut]] = {request.id: [] for request in snapshot.queue}
    for one in snapshot.left_out:
        if one.request in found and one.option not in snapshot.ignored:
            found[one.request].append(one)
    return {name: holds for name, holds in found.items() if holds}


def entry_name(job: str, idx: int) -> str:
    """Return what a running job is called, or one of several that stand for it, after the first.

    There are several where its hosts give it different amounts.
    """
    return job if idx == 0 else f"{job[:_MAX_NAME]}/{idx + 1}"


def entries_of(job: str, running: Iterable[RunningJob]) -> list[RunningJob]:
    """Return the running jobs that stand for one: under its name, or below it as ``JOB/...``."""
    beyond = f"{job[:_MAX_NAME]}/"
    return [one for one in running if one.id == job or one.id.startswith(beyond)]


def candidates_of(snapshot: Snapshot) -> list[Request]:
    """Return the requests that may start: those of the queue that are not held."""
    held = holds_of(snapshot)
    return [request for request in snapshot.queue if request.id not in held]


def with_queue(snapshot: Snapshot, queue: Sequence[Request]) -> Snapshot:
    """Return a snapshot in which others wait, without what was left out of those that do not."""
    names = {None, *(request.id for request in queue)}
    left_out = [one for one in snapshot.left_out if one.request in names]
    return snapshot.model_copy(update={"queue": [*queue], "left_out": left_out})


def queue_facts(snapshot: Snapshot) -> dict[str, int | None]:
    """Return how many requests wait, and how many of them are held, if any is: for tables."""
    held = len(holds_of(snapshot))
    return {"queued": len(snapshot.queue), **({"held": held} if held else {})}


def facts_of(result: Any) -> dict[str, int | None]:
    """Return how many requests of a result start, and `queue_facts`."""
    found = result.solution
    started = None if found is None else len(found.placements)
    return {"started": started, **queue_facts(result.instance)}


def require_known(snapshot: Snapshot) -> None:
    """Raise `InputError` if something left out is of no request of the queue."""
    names = {request.id for request in snapshot.queue}
    for idx, one in enumerate(snapshot.left_out):
        if one.request is not None and one.request not in names:
            expected, field = "a request of the queue", f"left_out[{idx}].request"
            raise InputError(expected, field=field, value=one.request, known=names)


def ignoring(snapshot: Snapshot, options: Sequence[str], *, strict: bool = True) -> Snapshot:
    """Return a snapshot in which these options hold no request; ``all`` stands for every one.

    Raises
    ------
    InputError
        For an option that was not left out, if `strict`: one snapshot of many may not have it.
    """
    if not options:
        return snapshot
    of_running = (one for job in snapshot.running for one in job.left_out or ())
    of_queue = (one for one in snapshot.left_out if one.request is not None)
    known = sorted({one.option for one in (*of_queue, *of_running)})
    if EVERY_OPTION in options:
        return snapshot.model_copy(update={"ignored": known})
    for name in options if strict else ():
        if not known:
            raise InputError("no option, as none was left out", field="ignore", value=name)
        if name not in known:
            raise unknown_name(name, known, field="ignore")
    ignored = {*snapshot.ignored, *(name for name in options if name in known)}
    return snapshot.model_copy(update={"ignored": sorted(ignored)})


def in_order(snapshot: Snapshot, order: str) -> Snapshot:
    """Return a snapshot whose requests start in an order.

    Raises
    ------
    InputError
        If there is no such order.
    """
    if order not in list(Order):
        raise unknown_name(order, Order, field="order")
    left_out = [one for one in snapshot.left_out if one.option != ORDER or one.request is not None]
    if order == Order.VALUE:
        return snapshot.model_copy(update={"order": Order.VALUE})
    changes = {"order": Order(order), "left_out": left_out, "value": Counted.NODES}
    return snapshot.model_copy(update=changes)


@dataclass(frozen=True)
class Choices:
    """What is chosen in addition to a snapshot: what to ignore, what values count, and the order.

    See `ignoring`, `valued_in` and `in_order`.
    """

    ignore: Sequence[str] = ()
    value: str | None = None
    order: str | None = None

    def of(self, snapshot: Snapshot, *, strict: bool = True) -> Snapshot:
        """Return a snapshot as it is chosen; one of many, unless `strict`."""
        found = ignoring(snapshot, self.ignore, strict=strict)
        found = found if self.order is None else in_order(found, self.order)
        return found if self.value is None else valued_in(found, self.value)


AS_IS = Choices()


def options_ahead(snapshot: Snapshot) -> frozenset[str]:
    """Return what is left out and is of no request, such as the order of priorities."""
    return frozenset(one.option for one in snapshot.left_out if one.request is None)


def left_out_text(snapshot: Snapshot, releases: str = "--ignore") -> str | None:
    """Return in a line how many requests are held or would be, and by what; None if none is.

    `releases` is the option that releases them, and its command if that is another one.
    """
    held = holds_of(snapshot)
    parts = []
    if held:
        counts = counts_text(one for own in held.values() for one in own)
        parts.append(
            f"{len(held)} of {number_of(len(snapshot.queue), 'request')} held ({counts}; "
            f"see {releases})"
        )
    ahead = _held_ahead(snapshot, held)
    if ahead:
        more = f" and {len(ahead) - _MOST_NAMES} more" if len(ahead) > _MOST_NAMES else ""
        names = ", ".join(ahead[:_MOST_NAMES]) + more
        parts.append(f"others start as if {names}, held before them in the order, took no nodes")
    ignored = [one for one in snapshot.left_out if one.option in snapshot.ignored]
    if ignored:
        parts.append(f"ignored: {counts_text(ignored)}")
    whole = {(one.option, one.value) for one in snapshot.left_out if one.request is None}
    unseen = [value for option, value in sorted(whole) if option == NOT_SEEN]
    apart = {NOT_SEEN, FOR_NOW, ELSEWHERE}
    apart |= _OF_BACKFILL if snapshot.order is not Order.BACKFILL else set()
    whole = {(option, value) for option, value in whole if option not in apart}
    parts += [f"not seen in this listing: {value}" for value in unseen]
    if whole:
        parts.append(f"not modelled: {'; '.join(map(' '.join, sorted(whole)))}")
    return "; ".join(parts) or None


def _held_ahead(snapshot: Snapshot, held: Mapping[str, Sequence[LeftOut]]) -> list[str]:
    """Return the held requests that may take nodes before one that is not, in an order."""
    if snapshot.order is Order.VALUE:
        return []
    queue = sorted(snapshot.queue, key=lambda request: -request.priority)
    last = max((k for k, one in enumerate(queue) if one.id not in held), default=0)
    names = [one.id for one in queue[:last] if one.id in held]
    return [name for name in names if not any(one.certain for one in held[name])]


def held_text(instance: object) -> str:
    """Return how many requests are held and what is ignored, to end a headline; else nothing.

    The instance is a snapshot, has one inside, or is of another problem.
    """
    snapshot = getattr(instance, "snapshot", instance)
    if not isinstance(snapshot, Snapshot):
        return ""
    held = len(holds_of(snapshot))
    text = f"; {held:,} of {number_of(len(snapshot.queue), 'request')} held" if held else ""
    return text + (f"; {', '.join(snapshot.ignored)} ignored" if snapshot.ignored else "")


def hold_text(holds: Iterable[LeftOut]) -> str:
    """Return what holds a request: ``held: partition acc; features bigmem``."""
    return "held: " + "; ".join(f"{one.option} {one.value}".rstrip() for one in holds)


def counts_text(options: Iterable[LeftOut]) -> str:
    """Return how many requests have each option, as text: ``features 1, partition 2``."""
    counts = Counter(option for _, option in {(one.request, one.option) for one in options})
    return ", ".join(f"{option} {count}" for option, count in sorted(counts.items()))
