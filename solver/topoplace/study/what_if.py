"""What if: a snapshot and changed versions of it, each placed and proven, side by side.

The most that a change can gain is known without a search: the certificate of the snapshot's first
level, evaluated by the checker on the changed one, proves a bound there too (weak duality).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from topoplace.certify.check import bound_on
from topoplace.errors import InputError, TopoplaceError, blamed_on, unknown_name
from topoplace.interrupts import Interrupted, heeded, is_asked
from topoplace.kinds import kind_named
from topoplace.machine import Prism, format_node_set, parse_node_set
from topoplace.result import Interference, Proof, Result
from topoplace.result.placement import PlacementCertificate, PlacementResult
from topoplace.shown import Told
from topoplace.snapshot.changes import Change, changed, known_nodes, named
from topoplace.snapshot.machines import AnyState, prepare_again
from topoplace.snapshot.running import job_name
from topoplace.snapshot.schema import Snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving import Options, Progress, solve
from topoplace.study.domain_worth import DomainWorth
from topoplace.types import IntArray

MOST_ROUTERS = 16
"""How many routers of the highest prices are taken away, one at a time, to bound the loss."""
MOST_FREED = 64
"""How many of the first routers that are down, or have service nodes, are freed in this way."""

WHAT_IF_SCHEMA = "topoplace.what-if/1"
BASE = "base"

Placed = Result[Any, Any, Snapshot]
Changes = Mapping[str, Any] | Sequence[Change]

Keep = Callable[["Scenario"], None]
"""Takes every scenario as soon as it is solved."""


@dataclass(frozen=True)
class Scenario:
    """A changed snapshot and its result.

    Attributes
    ----------
    gain
        The gain of the first level over the base; None where either has no solution.
    at_most
        The most that a placement can gain there, as the base's certificate proves without a search;
        None if it does not apply to this scenario.
    starts, waits
        The requests that start here and not in the base, and the reverse.
    hit
        Running jobs that have nodes which are down here and not in the base: they still run.
    """

    name: str
    result: Placed
    gain: int | None = None
    at_most: int | None = None
    starts: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    hit: tuple[str, ...] = ()


@dataclass(frozen=True)
class Worth:
    """The most that the first level can gain without a running job; None if not proven."""

    job: str
    at_most: int | None


@dataclass(frozen=True)
class RouterWorth:
    """The range of the value of the first level after a change of one router alone.

    Its nodes go ``down``, or those that are down or service nodes are ``free``. The first figure is
    that of the base's placement, without the jobs that have nodes there; None as with `Worth`.
    """

    router: int
    change: str
    at_least: int
    at_most: int | None


@dataclass(frozen=True, repr=False)
class WhatIf(Told):
    """Scenarios side by side, the base first, and the values of running jobs and nodes.

    `worth` has all running jobs that were considered, those that may gain most first; `routers` on
    tori and meshes those of the highest prices that may go down, then those that may be freed, the
    best first; `domains` on hierarchies and trees hosts and domains that may go down, come back or
    be emptied, those that matter most first.
    """

    scenarios: tuple[Scenario, ...]
    worth: tuple[Worth, ...] = ()
    routers: tuple[RouterWorth, ...] = ()
    domains: tuple[DomainWorth, ...] = ()
    interrupted: bool = False

    def document(self) -> dict[str, Any]:
        """Return it ready for JSON, without the results."""
        rows = []
        for one in self.scenarios:
            levels = [
                level.model_dump(mode="json", exclude={"certificate"})
                for level in one.result.levels
            ]
            own = {f.name: getattr(one, f.name) for f in dataclasses.fields(one)}
            rows.append({**own, "result": None, "levels": levels})
            del rows[-1]["result"]
        return {
            "schema": WHAT_IF_SCHEMA,
            "scenarios": rows,
            "worth": [dataclasses.asdict(one) for one in self.worth],
            "routers": [dataclasses.asdict(one) for one in self.routers],
            "domains": [dataclasses.asdict(one) for one in self.domains],
            "interrupted": self.interrupted,
        }


@heeded()
def what_if(
    state: AnyState,
    scenarios: Sequence[Changes],
    method: str = "exact",
    options: Options | None = None,
    *,
    worth: bool = False,
    keep: Keep | None = None,
    count: Callable[[int, int], None] | None = None,
) -> WhatIf:
    """Place a snapshot, and its changed version of each scenario.

    A signal ends the current solve with its best answer, and no other is begun.

    Parameters
    ----------
    scenarios
        Each some changes (`snapshot.changes`), also ``interference``, the rule on tori.
    options
        Those of every solve; the interference rule is that of the base.
    worth
        Whether to compute the values of each running job and of routers from the base's
        certificate.
    keep
        Called with every scenario as it is solved.
    count
        Called while these are computed, with the number done and the number of all.

    Raises
    ------
    InputError
        If a change cannot be made; before anything is solved.
    TopoplaceError
        If a placement gains more than the certificate allows: one of the two is wrong then.
    """
    options = options or Options()
    asked = [(BASE, state, options), *(_prepared(state, one, options) for one in scenarios)]
    found: list[Scenario] = []
    for name, own, under in asked:
        try:
            result = solve(own, method, _labelled(under, name))
        except Interrupted:
            break
        base = found[0].result if found else result
        found.append(_compared(name, base, result))
        if keep is not None:
            keep(found[-1])
        if is_asked():
            break
    if not found:
        raise Interrupted
    valued = _worth(found[0].result, count) if worth else ()
    priced = kind_named(found[0].result.problem).get("priced") if worth else None
    base = found[0].result
    rule = _rule(base)
    places = () if priced is None else priced(base).worth(lambda s: at_most(base, s, rule), count)
    routers = tuple(one for one in places if isinstance(one, RouterWorth))
    domains = tuple(one for one in places if isinstance(one, DomainWorth))
    return WhatIf(tuple(found), valued, routers, domains, is_asked())


def at_most(base: Placed, snapshot: Snapshot, rule: Interference | None = None) -> int | None:
    """Return the most that the first level gains on another snapshot, as a certificate proves.

    Any prices prove a bound. Routers that no job could use in the base have none there; the figure
    is the lower of two bounds, with price 0 for these and with the value of their nodes as price.
    """
    bound = bound_on(base, snapshot, rule)
    if base.objective is None:
        return None
    priced = kind_named(base.problem).get("priced")
    if priced is not None and (bound is None or bound > base.objective):
        bound = priced(base).bound_on(snapshot, rule, bound)
    return None if bound is None else bound - base.objective


def _prepared(
    state: AnyState, scenario: Changes, options: Options
) -> tuple[str, AnyState, Options]:
    """Return a scenario ready to be solved: its name, its snapshot, its options."""
    if not scenario or isinstance(scenario, str):
        raise InputError("changes by their kinds", field="changes", value=scenario)
    changes = tuple(scenario.items() if isinstance(scenario, Mapping) else scenario)
    name = named(changes)
    with blamed_on(name):
        for _, rule in (change for change in changes if change[0] == "interference"):
            if not kind_named(state.kind).has_rule:
                raise InputError("no interference rule but on tori and meshes", value=rule)
            if rule not in list(Interference):
                raise unknown_name(rule, Interference, field="interference")
            options = replace(options, interference=Interference(rule))
        others = [change for change in changes if change[0] != "interference"]
        return name, prepare_again(changed(state.snapshot, others), state), options


def _labelled(options: Options, name: str) -> Options:
    """Return options whose progress names the scenario."""
    watch = options.watch
    if watch is None:
        return options

    def told(progress: Progress) -> None:
        watch(replace(progress, instance=f"{progress.instance}, {name}"))

    return replace(options, watch=told)


def _compared(name: str, base: Placed, result: Placed) -> Scenario:
    """Return a scenario compared with the base, which may be itself."""
    if result is base:
        return Scenario(name, result)
    rule = _rule(result)
    most, gain = at_most(base, result.instance, rule), None
    if result.objective is not None and base.objective is not None:
        gain = result.objective - base.objective
    conforms = getattr(result.solution, "conforming", True)
    if conforms and most is not None and gain is not None and gain > most:
        raise TopoplaceError(f"{name}: gains {gain}, more than {most}, which the base proves")
    before, after = ({start.request for start in one.placements} for one in (base, result))
    starts, waits = (tuple(sorted(one)) for one in (after - before, before - after))
    return Scenario(name, result, gain, most, starts, waits, _hit(base.instance, result.instance))


def _hit(before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    """Return the running jobs that have nodes which are down only afterwards."""
    old, new = ({*known_nodes(one.written, one.down)} for one in (before, after))
    more, machine = new - old, after.written
    hit = (
        job_name(job)
        for job in (after.running if more else ())
        if not more.isdisjoint(known_nodes(machine, job.nodes))
    )
    return tuple(dict.fromkeys(hit))


def _rule(result: Placed) -> Interference | None:
    """Return the interference rule of a result; None of a kind that has none."""
    return getattr(result.limits, "interference", None)


def _worth(base: Placed, count: Callable[[int, int], None] | None) -> tuple[Worth, ...]:
    """Return the value of each running job, those that may gain most first."""
    level, jobs = base.levels[0], [*dict.fromkeys(map(job_name, base.instance.running))]
    if level.proof is not Proof.CERTIFICATE or base.objective is None:
        return ()
    rule = _rule(base)
    found: list[Worth] = []
    for done, job in enumerate(jobs):
        if is_asked():
            break
        if count is not None:
            count(done, len(jobs))
        without = changed(base.instance, [("without_job", job)])
        found.append(Worth(job, at_most(base, without, rule)))
    known = [(-one.at_most, k) for k, one in enumerate(found) if one.at_most is not None]
    return tuple(found[k] for _, k in sorted(known))


# ---- Routers of a torus or mesh ------------------------------------------------------------------


class Routers:
    """What the prices of a placement on a torus or mesh say of single routers."""

    def __init__(self, base: PlacementResult) -> None:
        self._base, self._level = base, base.levels[0]

    def bound_on(
        self, snapshot: Snapshot, rule: Interference | None, bound: int | None
    ) -> int | None:
        """Return the lower of a bound and that with prices for routers no job could use before."""
        certificate = self._level.certificate
        if bound is None or certificate is None:
            return bound
        freed = _freed(self._base.instance, snapshot)
        if not freed.any():
            return bound
        dear = self._level.model_copy(update={"certificate": _priced(certificate, freed)})
        priced = self._base.model_copy(update={"levels": [dear, *self._base.levels[1:]]})
        other = bound_on(priced, snapshot, rule)
        return bound if other is None else min(bound, other)

    def worth(
        self,
        gain: Callable[[Snapshot], int | None],
        count: Callable[[int, int], None] | None,
    ) -> tuple[RouterWorth, ...]:
        """Return the values of those of highest price that go down, then of the best freed.

        `gain` returns the most that the first level gains on another snapshot.
        """
        base = self._base
        if self._level.certificate is None or not base.solution:
            return ()
        state, objective = prepare(base.instance), base.objective or 0
        per, num = state.torus.nodes_per_router, state.torus.num_routers
        prices, worth = np.zeros(num), np.zeros(num, dtype=np.int64)
        for leaf, own in _leaves(self._level.certificate.model_dump(mode="json"), num):
            prices += own / leaf["scale"]
        values = {request.id: request.value for request in state.queue}
        counted = {r.id for r in base.instance.queue if r.shapes is not None and "maxz" in r.shapes}
        for job in base.solution.placements:
            on = np.unique(parse_node_set(job.nodes, state.torus.num_nodes) // per)
            if (
                job.prism is not None and job.request in counted
            ):  # whole routers count, idle ones too
                prism = Prism(tuple(job.prism.origin), tuple(job.prism.extents))
                on = prism.routers(state.torus)
            worth[on] += values[job.request]
        usable = state.usable.reshape(num, per)
        idle = ~state.occupied[:, None] & ~usable
        dear = [r for r in np.argsort(-prices, kind="stable").tolist() if usable[r].any()]
        taken = [r for r in dear[:MOST_ROUTERS] if prices[r] > 0]
        freed = np.flatnonzero(idle.any(axis=1))[:MOST_FREED].tolist()
        asked = [*(("add_down", r, usable) for r in taken), *(("free", r, idle) for r in freed)]
        found: list[RouterWorth] = []
        for done, (change, router, which) in enumerate(asked):
            if is_asked():
                break
            if count is not None:
                count(done, len(asked))
            nodes = format_node_set((router * per + np.flatnonzero(which[router])).tolist())
            more = gain(changed(base.instance, [(change, nodes)]))
            least = objective - int(worth[router]) if change == "add_down" else objective
            most = None if more is None else objective + more
            found.append(RouterWorth(router, change.removeprefix("add_"), least, most))

        def best_first(one: RouterWorth) -> tuple[bool, int]:
            most = one.at_most or 0
            return one.change == "free", -most if one.change == "free" else most

        return tuple(sorted(found, key=best_first))


def _freed(before: Snapshot, after: Snapshot) -> IntArray:
    """Return the values of routers without usable nodes before: nodes times priority."""
    old, new = (prepare(one).usable_of_any for one in (before, after))
    highest = max((request.priority for request in after.queue), default=0)
    return np.where(old == 0, new * highest, 0)


def _leaves(document: Any, num_routers: int) -> Iterator[tuple[dict[str, Any], IntArray]]:
    """Yield the leaves of a certificate as JSON has it, and what each charges for routers."""
    todo: list[Any] = [document]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, dict) and node.get("kind") == "leaf":
            text = node["prices"].get("routers", f"0*{num_routers}")
            words = [word.split("*") for word in text.split()]
            counts = [int(word[1]) if word[1:] else 1 for word in words]
            yield node, np.repeat([int(word[0]) for word in words], counts)
        elif isinstance(node, dict):
            todo += node.values()


def _priced(certificate: PlacementCertificate, worth: IntArray) -> PlacementCertificate:
    """Return a certificate whose leaves charge for routers at least these values."""
    document = certificate.model_dump(mode="json")
    for leaf, prices in _leaves(document, len(worth)):
        dear = np.maximum(prices, leaf["scale"] * worth)
        leaf["prices"]["routers"] = " ".join(map(str, dear.tolist()))
    adapter: TypeAdapter[PlacementCertificate] = TypeAdapter(PlacementCertificate)
    return adapter.validate_python(document)
