"""Slurm's reservations: the nodes that they keep from other jobs, now and later.

An active reservation holds what is left of its nodes until it ends, as a job that runs would. One
that begins later keeps out jobs that would still run then (`job_test_resv` of slurmctld).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from topoplace.errors import InputError, blamed_on, number_of
from topoplace.formats.declared import given_text
from topoplace.formats.slurm.fields import SCONTROL_RESERVATION
from topoplace.formats.slurm.listings import Entry
from topoplace.formats.slurm.nodes import NOTHING, SlurmNode, entries_in, local_moment
from topoplace.formats.text import text_of
from topoplace.machine.hostlist import NodeLists, expand_host_list, format_host_list
from topoplace.snapshot.files import json_fault
from topoplace.snapshot.schema import RESERVATION_PREFIX, Communication, RunningJob

_NEAR = 600
"""Seconds: a job that would end so little before a reservation begins may meet it.

It starts some time after it was listed, and Slurm reckons in steps (bf_resolution).
"""

_SLACK = 60
"""Seconds by which the times of two listings may differ."""

_FRESH = 120
"""Seconds that the last event of the nodes lies back at most, if local times are read rightly."""

_ZONES = 26 * 3600
"""Seconds by which local times of two zones differ at most."""

_NO_ZONE = "a local time (scontrol show reservation --json says it)"

_AGAIN = {"HOURLY", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY", "REOCCURRING"}


@dataclass(frozen=True)
class SlurmReservation:
    """Nodes that are reserved, now (`active`) or later.

    Attributes
    ----------
    when
        From when to when, as the file says it.
    begins, ends
        In seconds since 1970; None if that is not said.
    is_local
        Whether these are local times without their zone: they are read in that of this computer.
    cores
        How many cores of its nodes it has; None if that is not said.
    recurs
        Whether it comes again.
    magnetic
        Whether jobs that may have it need not name it.
    """

    nodes: frozenset[str]
    active: bool
    when: str
    begins: int | None = None
    ends: int | None = None
    is_local: bool = False
    cores: int | None = None
    recurs: bool = False
    magnetic: bool = False

    @property
    def about(self) -> str:
        """How large it is, and when."""
        return f"of {number_of(len(self.nodes), 'node')}, {self.when}"


def read_slurm_reservations(path: str | Path) -> dict[str, SlurmReservation]:
    """Read what ``scontrol show reservation`` prints, with ``-o`` or ``--json``."""
    text = text_of(path, or_json=True)
    if text.strip().lower().startswith("no reservations"):
        return {}
    with blamed_on(path):
        raw = _document(text)
    found = _from_json(raw, path) if raw is not None else _from_lines(path)
    return {name: one for name, one in found if one.nodes}


def _document(text: str) -> list[Entry] | None:
    """Return the entries of a JSON document; None for a text of another form."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise json_fault(error) from None
    listed = raw.get("reservations")
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        expected = "a list of reservations, as scontrol show reservation --json writes"
        raise InputError(expected, field="reservations", value=listed)
    now = Entry("", raw).number("last_update")
    return [Entry(f"reservations[{k}]", one, now=now) for k, one in enumerate(listed)]


def _from_json(
    entries: Iterable[Entry], path: str | Path
) -> Iterator[tuple[str, SlurmReservation]]:
    lists = NodeLists()
    for entry in entries:
        with blamed_on(path):
            begins, ends = entry.moment("start_time"), entry.moment("end_time")
            flags = {str(flag) for flag in entry.values.get("flags") or ()}
            when = " to ".join("" if at is None else _written(at) for at in (begins, ends))
            yield (
                entry.text("name"),
                SlurmReservation(
                    frozenset(lists.hosts(entry.text("node_list"), entry.field("node_list"))),
                    entry.now is not None and (begins or 0) <= entry.now < (ends or entry.now + 1),
                    when,
                    begins,
                    ends,
                    cores=entry.number("core_count") or None,
                    recurs=bool(flags & _AGAIN),
                    magnetic="MAGNETIC" in flags,
                ),
            )


def _written(at: int) -> str:
    return datetime.fromtimestamp(at, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _from_lines(path: str | Path) -> Iterator[tuple[str, SlurmReservation]]:
    lists = NodeLists()
    for name, settings in entries_in(path, "ReservationName", SCONTROL_RESERVATION):
        nodes = given_text(settings.get("Nodes"))
        with blamed_on(path, f"reservation {name}"):
            hosts = [] if nodes in NOTHING else lists.hosts(nodes, "Nodes")
        times = [settings.get(key, "") for key in ("StartTime", "EndTime")]
        (begins, zoned), (ends, _) = map(local_moment, times)
        cores = settings.get("CoreCnt", "")
        yield (
            name,
            SlurmReservation(
                frozenset(hosts),
                settings.get("State") == "ACTIVE",
                " to ".join(times),
                begins,
                ends,
                not zoned,
                int(cores) if cores.isdecimal() else None,
                bool({*settings.get("Flags", "").split(",")} & _AGAIN),
                "MAGNETIC" in settings.get("Flags", ""),
            ),
        )


# ---- What they keep from others ------------------------------------------------------------------


@dataclass(frozen=True)
class Later:
    """A reservation that begins later: its nodes, and in how many seconds, if that is known.

    `spread` is by how much it may be less or more, as its zone is not known.
    """

    nodes: frozenset[str]
    seconds: int | None
    about: str
    spread: int = 0

    def meets(self, walltime: int | None) -> bool | None:
        """Return whether a job that starts now runs when it begins; None if that is not known."""
        if self.seconds is None or walltime is None:
            return None
        if walltime > self.seconds + self.spread:
            return True
        return False if walltime + _NEAR <= self.seconds - self.spread else None


@dataclass(frozen=True)
class Reserved:
    """What the reservations of a cluster keep from others.

    Attributes
    ----------
    until
        Which reservation holds a node, and in how many seconds it ends: of several the last.
    down
        Nodes of active reservations whose end is not known.
    later
        Those that begin later, by name.
    unknown
        What is not known of the ends of active ones, in words.
    """

    until: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    down: frozenset[str] = frozenset()
    later: Mapping[str, Later] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def on(self, names: Set[str]) -> Reserved:
        """Return what reservations keep of some nodes."""
        until = {node: one for node, one in self.until.items() if node in names}
        return replace(self, until=until, down=self.down & names)

    def running(
        self,
        jobs: Iterable[RunningJob],
        capacity: Mapping[str, Mapping[str, int]] | None,
        closed: Iterable[str],
    ) -> list[RunningJob]:
        """Return running jobs, and what reservations hold of their nodes, as more of these.

        Jobs on reserved nodes hold them until the reservation ends, if that is later.

        Parameters
        ----------
        capacity
            What nodes have, if jobs share them.
        closed
            Nodes that are down.
        """
        found = [part for job in jobs for part in self._lasting(job)]
        left = {node: dict((capacity or {}).get(node, {})) for node in self.until}
        for node in {*closed} & left.keys():
            del left[node]
        for job in found:
            for node in {*expand_host_list(job.nodes)} & left.keys():
                if job.takes is None:
                    del left[node]
                    continue
                for name, amount in job.takes.items():
                    left[node][name] -= amount
        groups: dict[tuple[tuple[int, str], tuple[tuple[str, int], ...]], list[str]] = {}
        for node, amounts in sorted(left.items()):
            own = tuple(sorted((name, n) for name, n in amounts.items() if n))
            if own or capacity is None:
                groups.setdefault((self.until[node], own), []).append(node)
        return [*found, *_named(groups)]

    def _lasting(self, job: RunningJob) -> list[RunningJob]:
        """Return a job, or several where its nodes are reserved beyond its end."""
        ends: dict[int | None, list[str]] = {}
        for node in expand_host_list(job.nodes):
            until, _ = self.until.get(node, (0, ""))
            ends.setdefault(None if job.ends is None else max(job.ends, until), []).append(node)
        if len(ends) == 1:
            return [job.model_copy(update={"ends": next(iter(ends))})]
        return [
            job.model_copy(update={"id": f"{job.id}/{k}", "nodes": _listed(own), "ends": end})
            for k, (end, own) in enumerate(ends.items(), start=1)
        ]


def _listed(nodes: Iterable[str]) -> str:
    return format_host_list(sorted(nodes))


def _named(groups: Mapping[Any, list[str]]) -> Iterator[RunningJob]:
    """Yield what reservations hold of nodes, by reservation and what it is of each."""
    numbers: dict[str, int] = {}
    for ((end, name), takes), nodes in groups.items():
        number = numbers[name] = numbers.get(name, 0) + 1
        yield RunningJob(
            id=f"{RESERVATION_PREFIX}{name}" + (f"/{number}" if number > 1 else ""),
            nodes=_listed(nodes),
            takes=dict(takes) or None,
            ends=end,
            communication=Communication.NONE,
        )


def reserved_in(
    reservations: Mapping[str, SlurmReservation],
    nodes: Mapping[str, SlurmNode] | None,
    now: int | None,
) -> Reserved:
    """Return what reservations keep from others.

    Parameters
    ----------
    now
        When the jobs were listed, in seconds since 1970; None if that is not known.
    """
    until, down, unknown = dict[str, tuple[int, str]](), set[str](), list[str]()
    later, confirmed = dict[str, Later](), _confirmed(nodes or {}, now)
    for name, one in reservations.items():
        begins, ends = (_from(now, at) for at in (one.begins, one.ends))
        sure = confirmed or not one.is_local
        spread = 0 if sure else _ZONES
        if not one.active and not one.recurs and ends is not None and ends + spread <= 0:
            continue  # it is over, and still listed
        if not one.active:
            seconds = begins if (begins or 0) > spread else None
            zone = "" if sure else f", {_NO_ZONE}"
            later[name] = Later(one.nodes, seconds, f"{name} {one.about}{zone}", spread)
            continue
        if ends is None or ends <= 0 or (begins or 0) > _SLACK:
            down |= one.nodes
            unknown.append(f"of {name}, whose nodes count as down for good")
            continue
        for node in one.nodes:
            until[node] = max(until.get(node, (0, "")), (ends, name))
        cores = _cores(one.nodes, nodes or {})
        if one.magnetic:
            unknown.append(f"of {name}, which jobs may have that do not name it (MAGNETIC)")
        elif one.cores is not None and cores is not None and one.cores < cores:
            unknown.append(f"of {name}, which has {one.cores} of {cores} cores of its nodes")
        elif one.recurs:
            unknown.append(f"of {name}, which comes again")
        elif not sure:
            unknown.append(f"of {name}, {_NO_ZONE}")
    states = (nodes or {}).items()
    if any(own.use is not own.unreserved and n not in {*until, *down} for n, own in states):
        unknown.append("of nodes that no reservation names (--reservations)")
    return Reserved(until, frozenset(down), later, tuple(unknown))


def _from(now: int | None, at: int | None) -> int | None:
    return None if now is None or at is None else at - now


def _confirmed(nodes: Mapping[str, SlurmNode], now: int | None) -> bool:
    """Return whether local times of this computer are those of the cluster.

    Something happened to its nodes just before the listing then; in no other zone is it so.
    """
    seen = [node.seen for node in nodes.values() if node.seen is not None]
    return now is not None and bool(seen) and -_SLACK <= now - max(seen) <= _FRESH


def _cores(names: Iterable[str], nodes: Mapping[str, SlurmNode]) -> int | None:
    """Return how many cores some nodes have together; None if that is not known."""
    own = [nodes[name] for name in names if name in nodes]
    if any(node.cores is None for node in own):
        return None
    return sum(node.cores or 0 for node in own)
