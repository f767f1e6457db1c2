"""What hosts and domains of hierarchies and trees are worth, by the prices of one placement.

Any prices bound any snapshot of the same machine. Those of a certificate are put on the rows of
another snapshot: a pool gets the highest price of its hosts, and hosts that had no row before are
free, or as dear as the dearest; the lower bound counts. Branches may name any row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from topoplace.certify.check import bound_on
from topoplace.interrupts import is_asked
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.placement.hierarchy.layout import Layout
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.result import Interference
from topoplace.result.certificate import Certificate
from topoplace.result.placement import HierarchyResult
from topoplace.snapshot.changes import Change, changed
from topoplace.snapshot.hierarchy_state import prepare_hierarchy
from topoplace.snapshot.running import job_name
from topoplace.snapshot.schema import Snapshot

MOST_DOMAINS = 64
"""A level with more domains that a change is about is left out."""

_CERTIFICATE: TypeAdapter[Any] = TypeAdapter(Certificate)


@dataclass(frozen=True)
class DomainWorth:
    """The range of the value of the first level after a change of one host or domain alone.

    It goes ``down``, its hosts that are down are ``free``, or it is ``emptied``: all jobs that run
    there end. The first figure is that of the base's placement, without the requests that start
    there if it goes down; None where nothing is proven.
    """

    domain: str
    change: str
    at_least: int
    at_most: int | None


class Domains:
    """What the certificate of a placement on a hierarchy or tree says of single domains."""

    def __init__(self, base: HierarchyResult) -> None:
        self._base = base
        self._state = prepare_hierarchy(base.instance)
        self._layout = Layout(HierarchyProblem(self._state))

    def bound_on(
        self, snapshot: Snapshot, rule: Interference | None, bound: int | None
    ) -> int | None:
        """Return the lowest bound: one that is known, and those with prices for other rows."""
        first, found = self._base.levels[0], [bound]
        if first.certificate is not None:
            layout = Layout(HierarchyProblem(prepare_hierarchy(snapshot)))
            for dear in (False, True):
                document = first.certificate.model_dump(mode="json")
                _Translation(self._layout, layout, dear).apply(document)
                certificate = _CERTIFICATE.validate_python(document)
                level = first.model_copy(update={"certificate": certificate})
                levels = [level, *self._base.levels[1:]]
                found.append(bound_on(self._base.model_copy(update={"levels": levels}), snapshot))
        return min((one for one in found if one is not None), default=None)

    def worth(
        self,
        gain: Callable[[Snapshot], int | None],
        count: Callable[[int, int], None] | None,
    ) -> tuple[DomainWorth, ...]:
        """Return what domains are worth, by change, those that matter most first.

        Parameters
        ----------
        gain
            Returns the most that the first level gains on another snapshot.
        count
            Called with the number of domains done and of all.
        """
        objective = self._base.objective
        if objective is None or self._base.solution is None:
            return ()
        asked, found = [*self._asked()], []
        for done, (name, change, changes, lost) in enumerate(asked):
            if is_asked():
                break
            if count is not None:
                count(done, len(asked))
            most = gain(changed(self._base.instance, changes))
            most = None if most is None else objective + most
            found.append(DomainWorth(name, change, objective - lost, most))
        known = [one for one in found if one.at_most is not None]
        return tuple(
            sorted(known, key=lambda d: (d.at_most or 0) * (1 if d.change == "down" else -1))
        )

    def _asked(self) -> Iterator[tuple[str, str, list[Change], int]]:
        """Yield domains, what happens to them, the changes, and what starts there now."""
        machine, snapshot, lists = self._state.machine, self._base.instance, NodeLists()
        down = {machine.numbers[name] for name in lists.hosts(snapshot.down, "down")}
        values = {request.id: request.value for request in self._state.requests}
        runs = [{machine.numbers[h] for h in lists.hosts(j.nodes, "")} for j in snapshot.running]
        assert self._base.solution is not None
        starts = [
            (
                values[own.request],
                {
                    machine.numbers[name]
                    for part in own.parts
                    for share in part.shares
                    for name in lists.hosts(share.hosts, "")
                },
            )
            for own in self._base.solution.placements
        ]
        for level in reversed(range(machine.num_levels)):
            names = machine.host_names if level == machine.num_levels - 1 else None
            names = names or machine.domain_names[level]
            of = machine.domain_of[level]
            inside = [{*np.flatnonzero(of == d).tolist()} for d in range(len(names))]
            every: dict[str, list[tuple[str, str, list[Change], int]]] = {}
            for name, hosts in zip(names, inside, strict=True) if len(names) > 1 else ():
                pairs = zip(snapshot.running, runs, strict=True)
                jobs = dict.fromkeys(job_name(job) for job, own in pairs if own & hosts)
                lost = sum(value for value, own in starts if own & hosts)
                gone: list[Change] = [("without_job", job) for job in jobs]
                text = self._text(hosts - down)
                for change, changes, less in (
                    ("down", [("add_down", text)] if hosts - down else [], lost),
                    ("free", [("free", self._text(hosts & down))] if hosts & down else [], 0),
                    ("emptied", gone, 0),
                ):
                    if changes:
                        every.setdefault(change, []).append((name, change, changes, less))
            for some in every.values():
                if len(some) <= MOST_DOMAINS:
                    yield from some

    def _text(self, hosts: set[int]) -> str:
        return format_host_list(self._state.machine.host_names[host] for host in sorted(hosts))


class _Translation:
    """Puts prices, and rows that branches name, from the rows of a layout on those of another."""

    def __init__(self, before: Layout, after: Layout, dear: bool) -> None:
        self._before, self._after, self._dear = before, after, dear
        self._pool_of = {
            host: own.pool - before.families["pools"].start
            for own in before.nodes
            if own.pool is not None
            for host in own.hosts
        }
        self._new_pools = [own for own in after.nodes if own.pool is not None]
        self._new_pools.sort(key=lambda own: own.pool or 0)

    def apply(self, node: Any) -> None:
        """Change a certificate as JSON has it."""
        if isinstance(node, list):
            for one in node:
                self.apply(one)
        elif isinstance(node, dict):
            if node.get("kind") == "leaf":
                node["prices"] = self._prices(node["prices"])
            elif node.get("kind") == "cover":
                node["row"] = self._row(node["row"])
            for key, one in node.items():
                if key != "prices":
                    self.apply(one)

    def _prices(self, prices: dict[str, str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for family, text in prices.items():
            own, rows = np.array(_expanded(text), dtype=object), self._after.families.get(family)
            if family == "pools":
                most = max(own.tolist(), default=0) if self._dear else 0
                new = [
                    max(
                        (own[self._pool_of[h]] for h in pool.hosts if h in self._pool_of),
                        default=most,
                    )
                    for pool in self._new_pools
                ]
            elif rows is None or rows.stop - rows.start != len(own):
                continue
            else:
                new = own.tolist()
                if self._dear and family.startswith("hosts:"):
                    before = self._before.capacities[self._before.families[family]]
                    most = max(new, default=0)
                    new = [p if held else most for p, held in zip(new, before, strict=True)]
            found[family] = " ".join(map(str, new))
        return found

    def _row(self, row: int) -> int:
        """Return a row of the host of another row; any other one if there is none."""
        leaf, resource = self._before.leaf_of_row(row)
        node = self._after.nodes[self._after.node_of_host.get(self._before.nodes[leaf].hosts[0], 0)]
        if node.pool is not None:
            return node.pool
        if resource in self._after.first_row and node.hosts:
            return self._after.first_row[resource] + node.hosts[0]
        return 0


def _expanded(text: str) -> list[int]:
    words = [word.split("*") for word in text.split()]
    return [int(word[0]) for word in words for _ in range(int(word[1]) if word[1:] else 1)]
