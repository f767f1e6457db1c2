"""Kinds of problems: one object each, from which every table of kinds is derived.

A shipped kind is `KIND` in `kind.py` of its folder. Other packages add theirs by an entry point of
the group ``topoplace.kinds``, or by `register`. A kind names what belongs to it by module and name
(``package.module:name``), which is imported when it is first used: a command loads the method that
it runs, and the checker loads no solver.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from topoplace.errors import InputError, unknown_name
from topoplace.importing import imported

Ref = str
"""What is imported when it is first used, as ``module:name``."""


@dataclass(frozen=True)
class Kind:
    """A kind of problem.

    Attributes
    ----------
    name
        The field `problem` of its results.
    title
        The heading of its methods, after the word "Methods".
    result
        The model of its results (`topoplace.result.Result`).
    frame
        How it is solved, and how a result is made of what a method finds
        (`topoplace.solving.solve.Frame`).
    checker
        The plug-in of the checker (`topoplace.certify.report.Problem`), called with a result.
    machine
        The field `kind` of the machines that it places jobs on; None if it places no queue.
    model
        The model of the document of such a machine.
    shorthands
        What a shorthand of such a machine begins with, and an example: ``torus``, ``torus:8x8x8``.
    shorthand
        Returns the machine of a shorthand, called with what it begins with, the numbers before and
        after its last colon, and its whole text; None if these do not fit.
    prepare
        Checks a snapshot and returns what is to be solved. A kind that places no queue gets its
        instance instead of a snapshot. None if that is done elsewhere.
    offer
        The class that says what such a machine offers to the tasks of a mapping
        (`topoplace.mapping.machines.Offer`); None if no mapping goes on it.
    problem
        Returns the problem that methods solve. It gets what `prepare` returned, and the options.
        None if what `prepare` returned is the problem.
    solution
        The model of its solutions, for documents of several; None if there are no such documents.
    several
        The checker's plug-in for documents of several, None if it is `checker`.
    schema
        The schema of its instances, if it places no queue.
    instance
        The model of such an instance.
    view
        What tables and pictures show of a result (`topoplace.report.view.View`).
    methods
        By name of a shipped method: the module that registers it, or ``module:name`` of one that
        serves several kinds; and a line on what it does.
    site
        The class of such a machine under a replay of a job log (`TreeSite` of
        `topoplace.study.replay.trees`); None if there are no replays.
    allocator
        How external allocators are asked for placements there (`Door` of
        `topoplace.study.external.trial`); None if they are not.
    decided
        Returns what a result decided, for audits (`Case` of `topoplace.study.audit.cases`); None
        if these do not judge it.
    exported
        Makes the explicit model of a level (`Explicit` of `topoplace.explicit.exported`), called
        with the level (`topoplace.explicit.chosen.Chosen`); None if there is no such model.
    reference
        Returns the name of the MiniZinc model of a level, and its data, called with the level;
        None if there is no model.
    moves
        Says where running jobs go on such a machine (`Site` of `topoplace.placement.repack`), and
        `moved` the same to the checker (`Ground` of `topoplace.certify.moves`); None if nowhere.
        `shown` returns where jobs of an instance are and what they ask for, for pictures.
    priced
        What the prices of a certificate say of single routers or domains in a what-if (`Routers` of
        `topoplace.study.what_if`, `Domains` of `topoplace.study.domain_worth`); None if nothing.
    about
        Returns a line on a machine, called with its document; None for no line.
    read, written
        By format of another tool: what reads such a machine from a file, and what writes one,
        called with its document.
    of_switches
        Returns a switch tree, or a snapshot of one, as one of this kind, for ``convert --to`` and
        the name of the machine; None if nothing does.
    has_rule
        Whether jobs obey an interference rule: that of tori, on which they share links.
    usual
        The method that is used if the user names none, or ``auto``.
    kernels
        Groups of compiled kernels, of all its methods together.
    needed
        By method, the groups that it needs; the entry None is for all other methods.
    """

    name: str
    title: str
    result: Ref
    frame: Ref
    checker: Ref
    view: Ref
    prepare: Ref | None = None
    machine: str | None = None
    model: Ref | None = None
    shorthands: Mapping[str, str] = field(default_factory=dict)
    shorthand: Ref | None = None
    offer: Ref | None = None
    problem: Ref | None = None
    solution: Ref | None = None
    several: Ref | None = None
    schema: str | None = None
    instance: Ref | None = None
    methods: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    site: Ref | None = None
    allocator: Ref | None = None
    decided: Ref | None = None
    exported: Ref | None = None
    reference: Ref | None = None
    moves: Ref | None = None
    moved: Ref | None = None
    shown: Ref | None = None
    priced: Ref | None = None
    about: Ref | None = None
    read: Mapping[str, Ref] = field(default_factory=dict)
    written: Mapping[str, Ref] = field(default_factory=dict)
    of_switches: Ref | None = None
    has_rule: bool = False
    usual: str = "exact"
    kernels: tuple[str, ...] = ()
    needed: Mapping[str | None, tuple[str, ...]] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """Return what an attribute of the kind refers to; None if the attribute is None."""
        ref = getattr(self, name)
        return None if ref is None else loaded(ref)

    def offered(self, name: str, what: str, *, field: str | None = None, value: Any = None) -> Any:
        """Return what an attribute refers to, which has to be there.

        Raises
        ------
        InputError
            If this kind has none, naming those of which `what` has to be.
        """
        if getattr(self, name) is None:
            others = [kind for kind in known().values() if getattr(kind, name) is not None]
            names = dict.fromkeys(kind.machine or kind.name for kind in others)
            expected = f"{what} of kind {' or '.join(names)}"
            raise InputError(expected, field=field, value=value or self.machine or self.name)
        return self.get(name)

    def writer(self, form: str) -> Any:
        """Return what writes a machine in a format of another tool; None if nothing does."""
        return loaded(self.written[form]) if form in self.written else None


def loaded(ref: Ref) -> Any:
    """Return what ``module:name`` stands for."""
    module, _, name = ref.partition(":")
    return getattr(imported(module), name)


class State:
    """A snapshot, checked and ready: what `Kind.prepare` of a kind that places queues returns.

    Attributes
    ----------
    kind
        The name of the kind.
    """

    kind: str


_SHIPPED = {
    "placement": "topoplace.placement.torus.kind:KIND",
    "allocation": "topoplace.placement.switches.kind:KIND",
    "hierarchy": "topoplace.placement.hierarchy.kind:KIND",
    "cubes": "topoplace.placement.cubes.kind:KIND",
    "dragonfly": "topoplace.placement.dragonfly.kind:KIND",
    "fattree": "topoplace.placement.fattree.kind:KIND",
    "repack": "topoplace.placement.repack.kind:KIND",
    "mapping": "topoplace.mapping.kind:KIND",
}
_registered: dict[str, Kind] = {}


def shipped() -> dict[str, Kind]:
    """Return the kinds of this package by name."""
    return {name: loaded(ref) for name, ref in _SHIPPED.items()}


@cache
def _of_others() -> dict[str, Kind]:
    found = [entry.load() for entry in importlib.metadata.entry_points(group="topoplace.kinds")]
    return {kind.name: kind for kind in found}


def register(kind: Kind) -> None:
    """Add a kind in this process.

    Raises
    ------
    ValueError
        If there is one of its name.
    """
    if kind.name in known():
        raise ValueError(f"a kind named {kind.name} is registered already")
    _registered[kind.name] = kind


def known() -> dict[str, Kind]:
    """Return all kinds by name, those of this package first."""
    return shipped() | _of_others() | _registered


def kind_named(name: str) -> Kind:
    """Return the kind of problem of a name.

    Raises
    ------
    InputError
        If there is none.
    """
    if name in _SHIPPED:  # loads no other one
        kind: Kind = loaded(_SHIPPED[name])
        return kind
    found = known()
    if name not in found:
        raise unknown_name(name, list(found), field="problem")
    return found[name]


def placing() -> Iterator[Kind]:
    """Yield the kinds that place the queue of a snapshot.

    Those of other packages come last: they are looked for only if none before is the one wanted.
    """
    yield from (kind for kind in shipped().values() if kind.machine is not None)
    others = [kind for name, kind in known().items() if name not in _SHIPPED]
    yield from (kind for kind in others if kind.machine is not None)


def kind_of_schema(schema: str) -> Kind:
    """Return the kind that places no queue and whose instances have a schema."""
    return next(kind for kind in known().values() if kind.schema == schema)


def kind_of_machine(machine: str) -> Kind | None:
    """Return the kind that places queues on machines of a `kind`, None if there is none."""
    return next((kind for kind in placing() if kind.machine == machine), None)
