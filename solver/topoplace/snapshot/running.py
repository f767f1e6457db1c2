"""Running jobs as what they asked for: their names, what they hold, and the units that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from topoplace.errors import InputError
from topoplace.machine.hierarchy import Hierarchy
from topoplace.machine.hostlist import NodeLists
from topoplace.snapshot.held import entry_name
from topoplace.snapshot.schema import BY_SETS, LeftOut, Part, Request, RunningJob, Snapshot

Held = list[tuple[int, tuple[int, ...]]]
"""Hosts of a job, and what it holds of every resource on each."""


def job_name(job: RunningJob) -> str:
    """Return what a running job is called: a gang is one job."""
    return job.gang or job.id


def restricted(snapshot: Snapshot) -> dict[str, list[LeftOut]]:
    """Return by running job what restricts it that is neither modelled nor ignored."""
    found: dict[str, list[LeftOut]] = {}
    for job in snapshot.running:
        own = [one for one in job.left_out or () if one.option not in snapshot.ignored]
        if own:
            found.setdefault(job_name(job), []).extend(own)
    return found


def held_by(
    job: RunningJob, machine: Hierarchy, lists: NodeLists
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the hosts of a job, and what it holds of every resource on each."""
    for name in lists.hosts(job.nodes, "nodes"):
        host = machine.numbers[name]
        takes = tuple(machine.capacity[host].tolist())
        if job.takes is not None:
            takes = tuple(job.takes.get(r, 0) for r in machine.resources)
        yield host, takes


def amounts_of(takes: Sequence[int], machine: Hierarchy) -> dict[str, int]:
    """Return amounts of resources by name, without those that are 0."""
    return {r: n for r, n in zip(machine.resources, takes, strict=True) if n}


def units_of(
    name: str, request: Request, held: Held, machine: Hierarchy
) -> tuple[tuple[int, int, int], ...]:
    """Return by part and host the units that a job has: of the part of which they are fewest.

    Raises
    ------
    InputError
        If it does not hold what it asked for.
    """
    own: Sequence[Part | Request] = [request] if request.parts is None else request.parts
    parts = [(part.nodes, {"slots": 1} if part.takes is None else part.takes) for part in own]
    left = [nodes for nodes, _ in parts]
    found: Counter[tuple[int, int]] = Counter()
    for host, takes in held:
        amounts = amounts_of(takes, machine)
        fitting = []
        for p, (_, each) in enumerate(parts):
            some = {r: n for r, n in each.items() if n}
            units = max((amounts.get(r, 0) // n for r, n in some.items()), default=0)
            if 0 < units <= left[p] and amounts == {r: n * units for r, n in some.items()}:
                fitting.append((units, p))
        if not fitting:
            raise InputError(f"units of what {name} holds", field=f"{name}.asked", value=takes)
        units, p = min(fitting)
        found[p, host] += units
        left[p] -= units
    if any(left):
        raise InputError(f"as many units as {name} holds", field=f"{name}.asked")
    return tuple(sorted((p, host, units) for (p, host), units in found.items()))


# ---- What readers of other tools' files know of running jobs -------------------------------------


@dataclass(frozen=True)
class Began:
    """What a running job asked for.

    Attributes
    ----------
    asked
        As a request that would wait; None if that is not known.
    left_out
        What restricts it and is not modelled.
    rank
        Its priority; jobs of higher ones may end it (`Request.rank`).
    queue
        In which it waited (`Request.evicts`).
    """

    asked: Request | None = None
    left_out: Sequence[LeftOut] = ()
    rank: int | None = None
    queue: str | None = None


_OF_QUEUE = ("walltime", "submitted", "planned", "patterns", "rank", "evicts")


def as_asked(
    name: str, entries: Sequence[RunningJob], began: Began, machine: Hierarchy | None
) -> list[RunningJob]:
    """Return a running job with what it asked for; several entries are a gang of its name.

    It is restricted if it does not hold units of what it asked for; and on a torus (no `machine`)
    if it asked for certain nodes, as no job that moves is kept to such.
    """
    left_out, asked = [*began.left_out], began.asked
    if asked is not None:
        asked = asked.model_copy(update={"id": name} | dict.fromkeys(_OF_QUEUE))
    if asked is not None and not left_out:
        why = _no_units(entries, asked, machine)
        left_out += [LeftOut(option="units", value=why)] if why else []
    alone = None if asked is None or machine is None else _alone(asked)
    known = None if left_out or machine is None else asked
    found = []
    for idx, job in enumerate(entries):
        update: dict[str, object] = {"priority": began.rank, "queue": began.queue}
        update |= {"exclusive": alone}
        if len(entries) > 1:
            own = f"{entry_name(name, idx + 1).rpartition('/')[0]}/{idx + 1}"
            update |= {"gang": name, "id": own if job.id == name else job.id}
        if not idx:
            update |= {"asked": known, "left_out": left_out or None}
        found.append(job.model_copy(update=update))
    return found


def _alone(asked: Request) -> str | None:
    """Return the level whose domains a job asked to have for itself."""
    every = (asked, *(asked.parts or ()))
    return next((one.exclusive for one in every if one.exclusive is not None), None)


def _no_units(entries: Sequence[RunningJob], asked: Request, machine: Hierarchy | None) -> str:
    """Return why what a job holds are no units of what it asked for; nothing if they are."""
    if machine is None:
        limited = any(getattr(asked, name) for name in (*BY_SETS, "segment", "shapes", "near"))
        return "of certain nodes or shapes" if limited else ""
    lists = NodeLists()
    held = [one for job in entries for one in held_by(job, machine, lists)]
    try:
        units_of(asked.id, asked, held, machine)
    except InputError:
        return "it holds other amounts than it asked for"
    return ""
