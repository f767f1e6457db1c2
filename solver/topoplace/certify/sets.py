"""Which hosts an expression over named sets stands for, by a stack of operators.

`!` binds closest, then `&`, then `|` (docs/reference/formats.md, "Sets of hosts").
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from topoplace.certify.report import RefusedError, require_none
from topoplace.machine.hostlist import NodeLists
from topoplace.snapshot.schema import Request, Snapshot

Hosts = frozenset[int]
_BINDS = {")": 0, "|": 1, "&": 2, "!": 3}


class NodeSets:
    """The nodes of a snapshot, which have numbers: who holds them, and who may have which."""

    def __init__(self, snapshot: Snapshot, num_nodes: int) -> None:
        lists = len(snapshot.sets) + len(snapshot.queue)
        self._lists, self.every = NodeLists(max(1, lists) * num_nodes), frozenset(range(num_nodes))
        self._sets = {name: self.numbers(text) for name, text in snapshot.sets.items()}

    def numbers(self, text: str) -> Hosts:
        """Return the nodes of a list; raise `InputError` if it has a node twice, or no node."""
        return frozenset(self._lists.numbers(text, len(self.every)).tolist())

    def named(self, expression: str) -> Hosts:
        """Return the nodes of an expression."""
        return hosts_of(expression, self._sets, self.every)

    def of(self, one: Request) -> list[Hosts]:
        """Return the sets of nodes of one of which a request has all its nodes."""
        found = self.every if one.eligible is None else self.named(one.eligible)
        if one.excluded is not None:
            found -= self.numbers(one.excluded)
        return [found] if one.one_of is None else [found & self.named(own) for own in one.one_of]

    def held_and_free(
        self, snapshot: Snapshot, *foreign: str, missing: str = ""
    ) -> tuple[list[Hosts], Hosts]:
        """Return the nodes of every running job, and those that are free.

        Raises
        ------
        RefusedError
            If a job has fields that are `foreign`, or no nodes, missing ones or those of another.
        """
        left, held = {*self.every} - self.numbers(missing), []
        for job in snapshot.running:
            require_none(job, *foreign)
            own = self.numbers(job.nodes)
            if not own:
                raise RefusedError(f"{job.id} runs on no nodes")
            if not own <= left:
                node = min(own - left)
                raise RefusedError(f"{job.id} runs on node {node}, which is missing or another's")
            left -= own
            held.append(own)
        return held, frozenset(left) - self.numbers(snapshot.down)


def hosts_of(expression: str, sets: Mapping[str, Hosts], every: Hosts) -> Hosts:
    """Return the hosts of an expression; raise `RefusedError` if it is none."""
    values: list[Hosts] = []
    waiting: list[str] = []

    def apply() -> None:
        operator, last = waiting.pop(), values.pop()
        if operator == "!":
            values.append(every - last)
        else:
            values.append(values.pop() & last if operator == "&" else values.pop() | last)

    wants_value = True
    for token in re.findall(r"[&|!()]|[^\s&|!()]+", f"({expression})"):
        if (token in "&|)") == wants_value:
            raise RefusedError(f"{expression!r} is no expression over sets")
        if token in "!(":
            waiting.append(token)
        elif token in "&|)":
            while waiting and waiting[-1] != "(" and _BINDS[waiting[-1]] >= _BINDS[token]:
                apply()
            wants_value = token != ")"
            if wants_value:
                waiting.append(token)
            elif not waiting:
                raise RefusedError(f"{expression!r} closes a parenthesis that it does not open")
            else:
                waiting.pop()
        elif token in sets:
            values.append(sets[token])
            wants_value = False
        else:
            raise RefusedError(f"{token} is no set of the snapshot")
    if waiting:
        raise RefusedError(f"{expression!r} opens a parenthesis that it does not close")
    return values.pop()
