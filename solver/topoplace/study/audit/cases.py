"""What an audit judges: the state before a decision, and which requests started where.

It comes from recorded lines, from a pair of snapshots, or from a result.
"""

from __future__ import annotations

import itertools
import json
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from topoplace.errors import InputError, blamed_on, number_of
from topoplace.formats.decisions import (
    Decided,
    Decision,
    Taken,
    decision_of,
    read_decisions,
)
from topoplace.kinds import kind_named
from topoplace.machine.hierarchy import PLACES
from topoplace.machine.hostlist import expand_host_list, format_host_list
from topoplace.result import RESULT_SCHEMA, Result
from topoplace.result.placement import HierarchyResult
from topoplace.result.reading import parse_result
from topoplace.snapshot.faults import kind_of_document
from topoplace.snapshot.files import parse_object, read_bytes
from topoplace.snapshot.held import (
    AS_IS,
    ASSIGNMENT,
    ELSEWHERE,
    FOR_NOW,
    NOT_SEEN,
    ORDER,
    OVER_CAPACITY,
    PREEMPTION,
    Choices,
    entries_of,
    hold_text,
    holds_of,
    options_ahead,
)
from topoplace.snapshot.hierarchy_state import (
    HierarchyRequest,
    HierarchyState,
    PartState,
    on_switches,
    prepare_hierarchy,
)
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.reading import inputs_below, is_other_snapshot, other_snapshot
from topoplace.snapshot.running import job_name
from topoplace.snapshot.schema import (
    HierarchyModel,
    HostsModel,
    LeftOut,
    Request,
    RunningJob,
    Snapshot,
)
from topoplace.snapshot.sets import HostSet
from topoplace.study.case import load_instance, state_of

File = str | Path
_MOST_WAYS = 1 << 20
"""Ways to make up what a host gives that are tried."""
_OF_LINES = (".jsonl", ".ndjson")

Source = File | Mapping[str, Any] | Decision | Result[Any, Any, Any] | Snapshot


@dataclass(frozen=True)
class Case:
    """A decision to judge.

    Attributes
    ----------
    snapshot
        The machine before the decision, with the requests decided on as its queue.
    started
        The started requests, each with the units on its hosts, valid or not.
    outcome
        Whether a request was started, or else whether the queue waits or was refused for good.
    levels
        Levels of the machine whose domains count, in addition to that of its hosts.
    group
        The group of decisions with which it is counted.
    left_out
        Options that the scheduler had and the snapshot lacks: then its optimum is not known.
    held
        Requests with options that are not modelled, and these options: nothing is judged then.
    doubts
        Requests that may not start for another reason than room, as is known afterwards, and why:
        nothing is blamed for it that one of them waits, or one after it.
    ended
        Hosts of jobs that ended before the state afterwards: when is not known, so nobody is blamed
        who would have needed them.
    by_order
        Whether requests have an order that is not modelled: no other may start before the first.
    unknown
        Other fields of a recorded decision that are in no table.
    fault
        Why the decision cannot be read, if it cannot.
    broken
        Other requests that were started against a rule, and which: their nodes have less than they
        were given.
    """

    snapshot: Snapshot
    started: tuple[tuple[str, Taken], ...]
    outcome: Decided
    levels: tuple[str, ...]
    group: str = ""
    left_out: tuple[str, ...] = ()
    held: Mapping[str, Sequence[LeftOut]] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)
    ended: str = ""
    by_order: bool = False
    unknown: tuple[str, ...] = ()
    fault: str | None = None
    broken: Mapping[str, str] = field(default_factory=dict)

    @property
    def broken_text(self) -> str | None:
        """The rules in `broken`, in words; None if there are none."""
        return "; ".join(f"{name}: {why}" for name, why in self.broken.items()) or None

    @property
    def doubtful(self) -> tuple[str, ...]:
        """The requests that are held and might start: not those that certainly cannot now."""
        return tuple(name for name, own in self.held.items() if not any(one.certain for one in own))


def case_of_decision(decision: Decision) -> Case:
    """Return a recorded decision as a case."""
    snapshot = decision.snapshot
    started = () if decision.taken is None else ((snapshot.queue[0].id, decision.taken),)
    return Case(
        snapshot,
        started,
        decision.outcome,
        _levels_of(snapshot),
        decision.group,
        decision.left_out,
        unknown=decision.unknown,
    )


def _levels_of(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the levels that count: all, but for topology/block only the base blocks.

    No job asks for few of the groups of blocks that BlockSizes enforces.
    """
    levels = tuple(snapshot.written.domain_levels)
    return levels[-2:] if snapshot.written.has_blocks else levels


# ---- Results -------------------------------------------------------------------------------------


def case_of_result(result: HierarchyResult) -> Case:
    """Return the placements of a result of any method as a case.

    Raises
    ------
    InputError
        If the instance inside is not valid, or hosts are not a host list.
    """
    state_of(result)
    instance = on_switches(resolve_machine(result.instance))
    started = []
    for placement in result.solution.placements if result.solution is not None else ():
        taken: dict[str | None, dict[str, int]] = {}
        for part in placement.parts:
            units = taken.setdefault(part.part, {})
            for share in part.shares:
                for host in expand_host_list(share.hosts, "solution"):
                    units[host] = units.get(host, 0) + share.units
        started.append((placement.request, taken))
    outcome = Decided.STARTED if started else Decided.WAITING
    levels = tuple(instance.written.domain_levels)
    by_order = ORDER in options_ahead(instance)
    return Case(instance, tuple(started), outcome, levels, result.method, by_order=by_order)


# ---- Pairs of snapshots --------------------------------------------------------------------------


def case_of_pair(before: Snapshot, after: Snapshot) -> tuple[Case, list[str]]:
    """Return what was decided between two snapshots of a machine, and notes.

    Requests of the first one's queue that run in the second were started. They had to share the
    machine with everything else that runs in the second. A request that is neither running nor
    waiting afterwards was withdrawn. What the second says of one that still waits counts, too.

    A started request `job` runs under its name; where its hosts give it different amounts, or it
    has parts, as several entries ``job/...``, of a part ``job/PART`` or ``job/PART/...``.

    One that holds more than it asked for, or no whole number of its units, is not judged.

    Raises
    ------
    InputError
        If the machines differ in more than hosts that only one has, or it is not known yet on which
        hosts of a domain a request is.
    """
    _require_hierarchy(before)
    _require_hierarchy(after)
    if before.machine != after.machine:
        before, after = _on_one_machine(before, after)
    for one in after.left_out:
        if one.option == ASSIGNMENT:
            raise InputError("a host for every pod that has a domain", found=one.value)
    doubts = _doubts(before, after)
    before = _as_afterwards(before, after)
    state = prepare_hierarchy(before)
    waiting = {request.id for request in after.queue}
    entries = {request.id: entries_of(request.id, after.running) for request in before.queue}
    broken, odd = _out_of_bounds(before, after, entries)
    apart = {*broken, *(one.request for one in odd)}
    started, more = _started(state, {k: [] if k in apart else v for k, v in entries.items()})
    odd += more
    before = before.model_copy(update={"left_out": [*before.left_out, *odd]})
    holds = holds_of(before)
    own = {job.id for name, jobs in entries.items() if name not in holds for job in jobs}
    running = [job for job in after.running if job.id not in own]
    there = {r.id for r in before.queue if r.id in waiting or (entries[r.id] and r.id not in holds)}
    planned = {request.id: request.planned for request in after.queue}
    update = {
        "running": running,
        "queue": [
            r.model_copy(update={"planned": planned.get(r.id)})
            for r in before.queue
            if r.id in there
        ],
        "left_out": [one for one in before.left_out if one.request in {None, *there}],
    }
    judged = before.model_copy(update=update)
    prepare_hierarchy(judged)
    num_held = sum(bool(entries[name]) for name in holds)
    gone = waiting | holds.keys()
    withdrawn = sum(not entries[r.id] and r.id not in gone for r in before.queue)
    old, now = {job.id for job in before.running}, {job.id for job in running}
    notes = [
        f"{before.name}: {number_of(count, noun)} {what}"
        for count, noun, what in (
            (len(old - now), "running job", "ended: counted as ended before"),
            (
                len(now - old - {*holds}),
                "running job",
                "waited in no queue: counted as running before",
            ),
            (num_held, "held request", "started: counted as running before"),
            (withdrawn, "request", "withdrawn: not judged"),
        )
        if count
    ]
    notes += [
        f"{before.name}: not modelled: {PREEMPTION} {one.value}"
        for one in before.left_out
        if one.option == PREEMPTION
    ]
    back = [name for name in dict.fromkeys(map(job_name, before.running)) if name in waiting]
    if back and not there:
        notes.append(
            f"{before.name}: no decisions: nobody waits, and {back[0]} waits only afterwards; "
            "are the files swapped?"
        )
    outcome = Decided.STARTED if started or broken else Decided.WAITING
    by_order = ORDER in options_ahead(judged)
    levels = _levels_of(judged)
    taken = {host for _, units in started for own in units.values() for host in own}
    ended = format_host_list(sorted({*_ended(before, after)} - taken))
    case = Case(judged, started, outcome, levels, held=holds, by_order=by_order)
    return replace(case, doubts={**doubts, **broken}, ended=ended, broken=broken), notes


def _out_of_bounds(
    before: Snapshot, after: Snapshot, entries: Mapping[str, Sequence[RunningJob]]
) -> tuple[dict[str, str], list[LeftOut]]:
    """Return the started requests whose nodes have less than they were given, and why.

    Those that are not judged are the others: they are on nodes that are not of the machine, or
    jobs have their nodes too that may have come later.
    """
    there = [one.value.split(" ", 1) for one in after.left_out if one.option == ELSEWHERE]
    elsewhere = {name: text for name, text in there if name in entries}
    odd = [LeftOut(request=k, option=ELSEWHERE, value=text) for k, text in elsewhere.items()]
    texts = {
        job_name(job): one.value
        for job in after.running
        for one in job.left_out or ()
        if one.option == OVER_CAPACITY
    }
    known = {job_name(job) for job in before.running} | entries.keys()
    late = {host for name in texts.keys() - known for host in _hosts_held(name, after)}
    broken = {}
    for name in entries.keys() & texts.keys() - elsewhere.keys():
        if late & _hosts_held(name, after):
            odd.append(LeftOut(request=name, option=OVER_CAPACITY, value=texts[name]))
        else:
            broken[name] = texts[name]
    return broken, odd


def _ended(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """Yield the hosts of jobs that run before and no more afterwards, in whatever entries."""
    now = {name for job in after.running for name in (job.id, job.id.rpartition("/")[0])}
    for job in before.running:
        if job.id not in now and job.id.rpartition("/")[0] not in now - {""}:
            yield from expand_host_list(job.nodes, f"running {job.id}")


def _started(
    state: HierarchyState, entries: Mapping[str, Sequence[RunningJob]]
) -> tuple[tuple[tuple[str, Taken], ...], list[LeftOut]]:
    """Return the started requests with their units, and what holds those with odd amounts.

    A scheduler may give more than a job asked for, such as whole sockets; and an administrator may
    change what a job asks for before it starts.
    """
    started, odd = [], []
    for request in state.requests:
        try:
            if entries[request.id]:
                own = entries[request.id]
                taken = _taken(state, request.id, _anywhere(request), own)
                _require_as_asked(request, taken, own[0].asked)
                started.append((request.id, taken))
        except _OddError as error:
            value = str(error)[:1000]
            odd.append(LeftOut(request=request.id, option=error.option, value=value))
    return tuple(started), odd


class _OddError(Exception):
    """Says why what a job holds is not as many of its units as it asked for."""

    option = "allocation"


class _UnclearError(_OddError):
    """What a host gives to a job may be of several of its parts."""

    option = "parts"


def _require_as_asked(request: HierarchyRequest, taken: Taken, since: Request | None) -> None:
    """Raise `_OddError` if hosts give a started request more, or what it asked for `since`."""
    units = [(sum(own.values()), len(own)) for own in (taken[p.name] for p in request.parts)]
    asked = [part.units for part in request.parts]
    enough = all(hosts <= own <= n for (n, hosts), own in zip(units, asked, strict=True))
    held = sum(n for n, _ in units)
    if enough and held > sum(asked):
        raise _OddError(f"{number_of(held, 'unit')}, though it asked for {sum(asked)}")
    if since is not None and held == since.nodes != sum(asked):
        raise _OddError(f"{number_of(held, 'unit')}, as it asked for later; before, {sum(asked)}")


def _on_one_machine(before: Snapshot, after: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Return both on the hosts of either, which are down where they are not in the file.

    A request that started on hosts which came in between is held: whether it may be there is not
    known before.
    """
    before, after = _with_amounts(before, after), _with_amounts(after, before)
    old, new = _hosts_of(before), _hosts_of(after)
    differ = [name for name in old.keys() & new.keys() if old[name] != new[name]]
    own = [one.written.model_copy(update={"hosts": [], "name": "m"}) for one in (before, after)]
    if differ or not old or own[0] != own[1]:
        found = f"other amounts or domains of {format_host_list(differ)}" if differ else "another"
        raise InputError("the machine of the snapshot before", field="machine", found=found)
    every = {**old, **new}
    resources = sorted({name for _, amounts in every.values() for name in amounts})
    hosts = [
        HostsModel(hosts=name, domains=[*path], capacity=dict.fromkeys(resources, 0) | amounts)
        for name, (path, amounts) in every.items()
    ]
    machine = before.written.model_copy(update={"hosts": hosts})
    lacking = [format_host_list(sorted(every.keys() - one.keys())) for one in (old, new)]
    added = {*expand_host_list(lacking[0], "down")}
    held = [
        LeftOut(
            request=request.id, option="new-nodes", value=format_host_list(sorted(there))[:1000]
        )
        for request in before.queue
        if request.id not in {one.id for one in after.queue}
        if (there := added & _hosts_held(request.id, after))
    ]

    def on(one: Snapshot, lacks: str) -> Snapshot:
        sets = {
            name: format_host_list(
                host for host in expand_host_list(text, "sets") if host in old and host in new
            )
            for name, text in one.sets.items()
        }
        down = ",".join(filter(None, (one.down, lacks)))
        return one.model_copy(update={"machine": machine, "down": down, "sets": sets})

    first, second = map(on, (before, after), lacking)
    return first.model_copy(update={"left_out": [*before.left_out, *held]}), second


def _with_amounts(one: Snapshot, other: Snapshot) -> Snapshot:
    """Return a snapshot of whole nodes with what nodes have in one whose jobs share them.

    Slurm's reader leaves amounts out if no job of a listing shares nodes (`PLACES`).
    """
    own, known = _hosts_of(one), _hosts_of(other)
    places = max((amounts.get(PLACES, 0) for _, amounts in known.values()), default=0)
    alike = all(name in known and known[name][0] == path for name, (path, _) in own.items())
    whole = all(amounts == {"slots": 1} for _, amounts in own.values())
    if not places or not own or not alike or not whole:
        return one
    takes = {PLACES: places}

    def taking(request: Request) -> Request:
        if request.parts is None:
            return request.model_copy(update={"takes": takes})
        parts = [part.model_copy(update={"takes": takes}) for part in request.parts]
        return request.model_copy(update={"parts": parts})

    hosts = [
        HostsModel(hosts=name, domains=[*path], capacity=known[name][1])
        for name, (path, _) in own.items()
    ]
    running = [
        job if job.asked is None else job.model_copy(update={"asked": taking(job.asked)})
        for job in one.running
    ]
    update = {"running": running, "queue": [taking(request) for request in one.queue]}
    machine = one.written.model_copy(update={"hosts": hosts})
    return one.model_copy(update={"machine": machine, **update})


def _hosts_of(snapshot: Snapshot) -> dict[str, tuple[tuple[str, ...], dict[str, int]]]:
    """Return the domains of every host of a hierarchy, and what it has; nothing of a tree."""
    machine = snapshot.written
    return {
        name: (tuple(group.domains), {k: n for k, n in group.capacity.items() if n})
        for group in (machine.hosts if isinstance(machine, HierarchyModel) else ())
        for name in expand_host_list(group.hosts, "machine.hosts")
    }


def _hosts_held(name: str, snapshot: Snapshot) -> set[str]:
    """Return the hosts of a running job, under all its names."""
    return {
        host
        for job in entries_of(name, snapshot.running)
        for host in expand_host_list(job.nodes, f"running {job.id}")
    }


def _as_afterwards(before: Snapshot, after: Snapshot) -> Snapshot:
    """Return the snapshot before with what that afterwards says of its requests and nodes.

    A request that still waits is held by what certainly keeps it from starting then. A node that is
    down in either gives room to no request, except where one started: as it is not known when such
    a node opened or closed, no decision is blamed then.
    """
    asked, waiting = ({request.id for request in one.queue} for one in (before, after))
    known = {(one.request, one.option) for one in before.left_out}
    certain = [one for one in after.left_out if one.certain and one.request in asked]
    left_out = [
        *before.left_out,
        *(one for one in certain if (one.request, one.option) not in known),
    ]
    down, later = ({*expand_host_list(one.down, "down")} for one in (before, after))
    started = {host for name in asked - waiting for host in _hosts_held(name, after)}
    left_out += [one for one in after.left_out if (one.request, one.option) == (None, NOT_SEEN)]
    left_out += [
        LeftOut(request=one.value, option="at-most", value="which it may have waited for in vain")
        for one in before.left_out
        if one.option == FOR_NOW and one.value in asked - waiting
        if _is_on_more(prepare_hierarchy(before), one.value, after)
    ]
    if changed := format_host_list(sorted((down ^ later) & started)):
        value = f"when {changed} opened or closed"[:1000]
        left_out.append(LeftOut(option=NOT_SEEN, value=value))
    closed = format_host_list(sorted((down | later) - started | (down & later)))
    return before.model_copy(update={"down": closed, "left_out": left_out})


def _is_on_more(state: HierarchyState, name: str, after: Snapshot) -> bool:
    """Return whether a started request has more domains than the most that it asked for."""
    (most,) = [one.at_most for one in state.snapshot.queue if one.id == name]
    machine = state.machine
    numbers = {host: k for k, host in enumerate(machine.host_names)}
    jobs = entries_of(name, after.running)
    hosts = [numbers[host] for job in jobs for host in expand_host_list(job.nodes, "running")]
    if most is None:
        return False
    return len({*machine.domain_of[machine.levels.index(most.level), hosts].tolist()}) > most.size


def _doubts(before: Snapshot, after: Snapshot) -> dict[str, str]:
    """Return why requests that wait in both may not start, as only that afterwards says."""
    asked, then = ({request.id: request for request in one.queue} for one in (before, after))
    holds = holds_of(after.model_copy(update={"ignored": before.ignored}))
    known = holds_of(before)
    return _overtaken(before, after) | {
        name: f"afterwards {hold_text(holds[name])}" if name in holds else _CHANGED
        for name in asked
        if name in then
        and name not in known
        and (name in holds or _rules(asked[name], before) != _rules(then[name], after))
    }


def _overtaken(before: Snapshot, after: Snapshot) -> dict[str, str]:
    """Return which requests that wait in both come after another now, if there is an order."""
    if ORDER not in options_ahead(before):
        return {}
    waiting = [request.id for request in after.queue]
    turns = {name: (turn, 1) for turn, name in enumerate(waiting)}
    for request in before.queue:
        own = [job.turn for job in entries_of(request.id, after.running) if job.turn is not None]
        turns |= {request.id: (own[0], 0)} if own else {}
    found, first = dict[str, str](), ""
    for name in [request.id for request in before.queue if request.id in turns][::-1]:
        if first and turns[name] < turns[first]:
            first = name
        elif first and name in waiting:
            found[name] = f"{first} comes before it afterwards"
        first = first or name
    return found


_CHANGED = "it asks for something else afterwards"
_NO_RULES = {"planned", "submitted", "priority", "evicts"}


def _rules(request: Request, snapshot: Snapshot) -> tuple[str, dict[str, str]]:
    """Return what a request asks for, and the sets that it names."""
    text = request.model_dump_json(exclude=_NO_RULES)
    return text, {name: nodes for name, nodes in snapshot.sets.items() if name in text}


def _require_hierarchy(snapshot: Snapshot) -> None:
    if not snapshot.written.domain_levels:
        expected = "a hierarchy or a tree, as audits are of those only"
        raise InputError(expected, field="machine", found=snapshot.written.kind)


def _anywhere(request: HierarchyRequest) -> tuple[PartState, ...]:
    """Return the parts of a request with all hosts that one of its sets has."""
    found = []
    for ways in zip(*request.ways, strict=True):
        masks = [part.eligible.mask for part in ways if part.eligible is not None]
        every = HostSet(np.logical_or.reduce(masks)) if len(masks) == len(ways) else None
        found.append(replace(ways[0], eligible=every))
    return tuple(found)


def _taken(
    state: HierarchyState, name: str, parts: tuple[PartState, ...], jobs: Sequence[RunningJob]
) -> Taken:
    taken: dict[str | None, dict[str, int]] = {part.name: {} for part in parts}
    for job in jobs:
        of = f"{job.id[len(name) :]}/"
        named = [p for p in parts if len(parts) == 1 or f"/{p.name}/" in of]
        for host in expand_host_list(job.nodes, f"running {job.id}"):
            there = named or _may_be_on(parts, state.machine.host_names.index(host), job)
            if len(there) == 1:
                shares: Sequence[int] = [_units(state, there[0], job, host)]
            else:
                shares = _shares(state, there, job, parts)
            for part, n in zip(there, shares, strict=True):
                if n:
                    taken[part.name][host] = taken[part.name].get(host, 0) + n
    return taken


def _may_be_on(parts: Sequence[PartState], host: int, job: RunningJob) -> list[PartState]:
    """Return the parts that may have a host; of a job with whole hosts only those with a set."""
    return [
        p
        for p in parts
        if (p.eligible.mask[host] if p.eligible is not None else job.takes is not None)
    ]


def _shares(
    state: HierarchyState, there: Sequence[PartState], job: RunningJob, parts: Sequence[PartState]
) -> Sequence[int]:
    """Return how many units of each part make up what a job holds of a host: in one way only."""
    held = [(job.takes or {}).get(name, 0) for name in state.machine.resources]
    most = [
        min((have // each for have, each in zip(held, p.takes, strict=True) if each), default=0)
        for p in there
    ]
    columns = list(zip(*(p.takes for p in there), strict=True))
    tried = itertools.islice(itertools.product(*(range(n + 1) for n in most)), _MOST_WAYS)
    ways = [
        units for units in tried if held == [sum(map(operator.mul, units, own)) for own in columns]
    ]
    names = ", ".join(str(part.name) for part in parts)
    if len(ways) > 1:
        raise _UnclearError(f"its hosts may be of {names}")
    if not ways or not there:
        expected = f"a running job of one of the parts {names}, as JOB/PART"
        raise InputError(expected, field="running", value=job.id)
    return ways[0]


def _units(state: HierarchyState, part: PartState, job: RunningJob, host: str) -> int:
    """Return how many units of a part a job holds on a host."""
    machine = state.machine
    if job.takes is not None:
        held = [job.takes.get(name, 0) for name in machine.resources]
    else:
        held = machine.capacity[machine.host_names.index(host)].tolist()
    pairs = [(have, each) for have, each in zip(held, part.takes, strict=True) if each]
    units = pairs[0][0] // pairs[0][1]
    if job.takes is None:  # a whole host, no matter what else it has
        if min(have // each for have, each in pairs) != 1:
            expected = f"takes, as {host} holds several units or none"
            raise InputError(expected, field=f"running {job.id}", found="none")
        return 1
    if units < 1 or any(have != units * each for have, each in pairs):
        amounts = (f"{n} {name}" for name, n in sorted(job.takes.items()) if n)
        raise _OddError(f"{', '.join(amounts)} of {host}, no multiple of a unit of the request")
    return units


# ---- Files ---------------------------------------------------------------------------------------


def load_cases(
    sources: Iterable[Source],
    after: File | Snapshot | None = None,
    choices: Choices = AS_IS,
) -> tuple[list[Case], list[str]]:
    """Read anything that can be audited, with notes about it.

    Parameters
    ----------
    sources
        Files of recorded decisions or of results, folders of results, decisions and results.
    after
        With it the only source is a snapshot, and this one is the state afterwards.
    choices
        What is chosen beside the snapshot before.

    Raises
    ------
    InputError
        Naming the file and the field at fault, or if there is nothing to audit.
    """
    given = list(sources)
    if after is not None:
        first, second = pair_of(given, after, choices)
        with blamed_on(_called(after)):
            case, notes = case_of_pair(first, second)
        return [case], notes
    cases = [case for source in given for case in _cases(source)]
    if not cases:
        raise InputError("decisions to audit", field="sources", found="none")
    return cases, unknown_notes(cases)


def unknown_notes(cases: Iterable[Case]) -> list[str]:
    """Return a line on the fields of recorded decisions that are in no table, if there are any."""
    names = sorted({name for case in cases for name in case.unknown})
    return [f"fields that are not known, and not read: {', '.join(names)}"] if names else []


def pair_of(
    sources: Sequence[Source], after: File | Snapshot, choices: Choices
) -> tuple[Snapshot, Snapshot]:
    """Return the only source and what came after it, both as hierarchies."""
    if len(sources) != 1 or not isinstance(sources[0], str | Path | Snapshot):
        raise InputError("one snapshot, that before", field="after", found=str(len(sources)))
    return choices.of(_snapshot(sources[0])), _snapshot(after)


def _snapshot(source: File | Snapshot) -> Snapshot:
    found = source if isinstance(source, Snapshot) else load_instance(source)
    with blamed_on(_called(source)):
        if not isinstance(found, Snapshot):
            raise InputError("a snapshot", found="a mapping instance")
        found = on_switches(resolve_machine(found))
        _require_hierarchy(found)
        prepare_hierarchy(found)
    return found


def _called(source: File | Snapshot) -> str:
    return source.name if isinstance(source, Snapshot) else str(source)


def _cases(source: Source) -> Iterator[Case]:
    if isinstance(source, Decision):
        yield case_of_decision(source)
    elif isinstance(source, Result):
        yield _judged(source)
    elif isinstance(source, Mapping):
        yield _of_document(source)
    elif isinstance(source, Snapshot) or (is_other_snapshot(source) and other_snapshot(source)):
        raise InputError("what came after a snapshot", field="after", found="nothing")
    elif Path(source).is_dir():
        files = [path for path in inputs_below(Path(source)) if not is_other_snapshot(path)]
        if not files:
            raise InputError("a folder of results (*.json)", file=str(source))
        for file in files:
            yield from _of_file(file)
    else:
        yield from _of_file(source)


def _of_document(document: Mapping[str, Any]) -> Case:
    if document.get("schema") == RESULT_SCHEMA:
        return _judged(parse_result(json.dumps(document).encode(), "document"))
    return case_of_decision(decision_of(document))


def _of_file(file: File) -> Iterator[Case]:
    text = read_bytes(file)
    if Path(file).suffix in _OF_LINES or _is_lines(text):
        decisions = [case_of_decision(decision) for decision in read_decisions(file)]
        if not decisions:
            raise InputError("recorded decisions", file=str(file), found="an empty file")
        yield from decisions
        return
    raw = parse_object(text, str(file))
    if raw.get("schema") != RESULT_SCHEMA:
        expected = "recorded decisions, a result or, with --after beside it, a snapshot"
        found = kind_of_document(raw)
        raise InputError(expected, file=str(file), field="schema", found=found)
    with blamed_on(str(file)):
        yield _judged(parse_result(text, str(file)))


def _is_lines(text: bytes) -> bool:
    """Whether a text is recorded decisions: its first line is an object without a schema."""
    first = next((line for line in text.splitlines() if line.strip()), b"")
    found = _object(first)
    return found is not None and "schema" not in found


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _judged(result: Result[Any, Any, Any]) -> Case:
    """Return what was decided in a result, of a kind of problem that audits know."""
    kind = kind_named(result.problem)
    decided = kind.offered("decided", "a result", field="problem", value=result.problem)
    case: Case = decided(result)
    return case


def counting(case: Case, levels: Iterable[str] | None) -> Case:
    """Return a case where the domains of these levels count; None leaves it as it is.

    Raises
    ------
    InputError
        For a level that its machine does not have.
    """
    if levels is None:
        return case
    known = case.snapshot.written.domain_levels
    if not known:
        raise InputError("no levels on a pod of cubes", field="levels", value=", ".join(levels))
    for level in levels:
        if level not in known:
            expected = f"levels of {case.snapshot.name}: {', '.join(known)}"
            raise InputError(expected, field="levels", value=level, known=known)
    return replace(case, levels=tuple(levels))
