"""One decision against the rules, and against the optimum under the same rules.

The checker's functions, which no method shares, decide whether a decision keeps the rules, and
compute its value. The optimum is that of the method `exact`, and counts only if the checker
confirms its certificates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from topoplace.certify.candidates import candidates
from topoplace.certify.check import check_document
from topoplace.certify.cubes.check import value_of
from topoplace.certify.cubes.instance import read_instance as read_cubes
from topoplace.certify.hierarchy.instance import (
    Asked,
    Instance,
    Place,
    holds,
    read_instance,
    require_place,
    require_room,
    worth,
)
from topoplace.certify.report import RefusedError
from topoplace.errors import TopoplaceError, number_of
from topoplace.formats.decisions import Decided, Taken
from topoplace.machine.hostlist import expand_host_list, format_host_list
from topoplace.placement.hierarchy.contract import held_to
from topoplace.placement.hierarchy.fragmentation import Fragmentation, after, after_result, before
from topoplace.result import level_label
from topoplace.result.placement import CubesResult, HierarchyResult, RepackResult
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.held import (
    CONTRACT,
    ELSEWHERE,
    FOR_NOW,
    NOT_SEEN,
    ORDER,
    PLANS,
    PREEMPTION,
    PREEMPTION_RULES,
    PREFERENCE,
    RESERVATION_END,
    RESERVATION_LATER,
    RESERVATIONS,
    WINDOW,
    counts_text,
    hold_text,
    options_ahead,
    with_queue,
)
from topoplace.snapshot.hierarchy_state import hierarchy_of, prepare_hierarchy
from topoplace.snapshot.schema import (
    HierarchyModel,
    HostsModel,
    Part,
    Request,
    RunningJob,
    Snapshot,
)
from topoplace.snapshot.value import STARTED_LEVELS
from topoplace.solving import Options, solve
from topoplace.study.audit.cases import Case
from topoplace.study.audit.pods import chips_started, cubes_taken
from topoplace.study.audit.pods import has_room as has_chips


class Verdict(StrEnum):
    """The verdict of an audit on a decision (docs/guide/audit.md)."""

    OPTIMAL = "optimal"
    SUBOPTIMAL = "suboptimal"
    MISSED = "missed"
    RIGHTLY_WAITING = "rightly waiting"
    INVALID = "invalid"
    STARTED = "rightly started"
    OUT_OF_TURN = "out of turn"
    UNPROVEN = "unproven"
    UNJUDGED = "unjudged"


@dataclass(frozen=True)
class Level:
    """The values of a decision and of the best known placement on a level, and the proven bound.

    Attributes
    ----------
    decision
        The decision's value; None if the decision breaks a rule.
    best, bound
        Both are for placements that are at least as good as the best one on earlier levels.
    label
        Its name for people (`topoplace.result.level_label`).
    """

    name: str
    sense: str
    decision: int | None
    best: int | None
    bound: int | None
    label: str

    @property
    def is_proven(self) -> bool:
        """Whether the best one is proven optimal."""
        return self.best is not None and self.best == self.bound


@dataclass(frozen=True)
class Standing:
    """A decision compared with the optimum under the same rules.

    Attributes
    ----------
    broken
        The rule that the decision breaks, if it does.
    levels
        Empty if the contract refuses the request, as there is nothing to place.
    differs
        The first level on which the decision is not proven optimal.
    level
        The level on which its regret is counted: `differs`, or else the lowest above the hosts.
    used, fewest
        Domains of that level, and the fewest proven possible; None unless something was started.
    fragmentation
        On Slurm's blocks: its own figure after the best known placement.
    jobs
        The requests that the verdict is about: those that were started, or rightly wait; for
        `MISSED` those that the best placement also starts; for `UNJUDGED` those held, if there are
        any.
    reason
        Where requests have an order: why a request waits, or could have started.
    """

    verdict: Verdict
    broken: str | None = None
    levels: tuple[Level, ...] = ()
    differs: str | None = None
    level: str | None = None
    used: int | None = None
    fewest: int | None = None
    fragmentation: int | None = None
    jobs: tuple[str, ...] = ()
    reason: str = ""

    @property
    def regret(self) -> int | None:
        """Domains above the fewest."""
        return None if self.used is None or self.fewest is None else self.used - self.fewest

    @property
    def fits(self) -> bool | None:
        """Whether more could have started; None if that is not known."""
        return self.verdict is Verdict.MISSED or (None if self.differs in STARTED_LEVELS else False)

    @property
    def strands(self) -> int | None:
        """Units left over on the hosts used, beyond the least; None if a level before differs."""
        if self.used is None or any(lv.decision != lv.bound for lv in self.levels[:-1]):
            return None
        last = self.levels[-1]
        if last.sense == "max":  # a pod, where nothing is stranded
            return None
        return None if last.decision is None or last.bound is None else last.decision - last.bound


AnyResult = HierarchyResult | CubesResult | RepackResult

Keep = Callable[[tuple[str, AnyResult]], None]
"""Takes the rules (``free`` or a contract), and the result that proves the optimum under them."""

FREE = "free"

SAID = frozenset(
    (
        *(ORDER, PREEMPTION, PREEMPTION_RULES, PREFERENCE),
        *(PLANS, RESERVATION_END, RESERVATION_LATER),
        *(NOT_SEEN, FOR_NOW, ELSEWHERE, RESERVATIONS, WINDOW),
    )
)
"""Options, of no request, about the order or later times, or that others speak of."""


def not_modelled(snapshot: Snapshot, apart: Collection[str]) -> str:
    """Return in words what is left out and is of no request, apart from some; else nothing."""
    ahead = [
        f"{one.option} {one.value}"
        for one in snapshot.left_out
        if one.request is None and one.option not in apart
    ]
    return f"not modelled: {'; '.join(sorted(ahead))}" if ahead else ""


def stand(case: Case, contract: str | None, options: Options, keep: Keep | None = None) -> Standing:
    """Compare a decision with the rules of its requests, and of a contract if one is named.

    Raises
    ------
    InputError
        If the machine cannot be held to the contract.
    TopoplaceError
        If the checker does not confirm the optimum, or the decision beats it: one is wrong then.
    """
    snapshot = case.snapshot
    if not snapshot.written.domain_levels:
        return _stand_in_pod(case, options, keep)
    if contract is not None:
        snapshot, refused = under(case, contract)
        told = next((refused[name] for name, _ in case.started if name in refused), None)
        if told is not None:
            return Standing(Verdict.INVALID, told)
        if not snapshot.queue:
            return Standing(Verdict.RIGHTLY_WAITING)
    instance = read_instance(snapshot)
    broken = case.fault or case.broken_text
    started: list[tuple[Asked, Place]] = []
    try:
        started = list(started_in(instance, case.started))
        require_room(instance, started)
    except RefusedError as error:
        broken = broken or str(error)
    counted = counted_on(snapshot, case.levels)
    result = _proven(counted, options)
    if keep is not None:
        keep((contract or FREE, result))
    figures = None if broken is not None else _figures(read_instance(counted), started)
    standing = _judged(case, result, figures, broken)
    standing = _unblamed(replace(case, snapshot=snapshot), standing, options)
    if standing.verdict in (Verdict.MISSED, Verdict.SUBOPTIMAL) and case.ended:
        now = case.snapshot
        down = ",".join(filter(None, (now.down, case.ended)))
        closed = now.model_copy(update={"down": format_host_list(expand_host_list(down))})
        fewer = stand(replace(case, snapshot=closed, ended=""), contract, options)
        if fewer.verdict is not standing.verdict:
            standing = replace(standing, verdict=Verdict.UNJUDGED, reason=ended_text(case))
    if not is_of_blocks(case):
        return standing
    return replace(standing, fragmentation=after_result(case.snapshot, result))


def _unblamed(case: Case, standing: Standing, options: Options) -> Standing:
    """Return a verdict without blame for what is not modelled."""
    ahead = options_ahead(case.snapshot)
    if standing.verdict is Verdict.MISSED:
        if "tier" in ahead:
            why = "not modelled: the order in several partitions"
            return replace(standing, verdict=Verdict.UNJUDGED, reason=why)
        if case.by_order and not _first_fits(case, options):
            return replace(standing, verdict=Verdict.UNJUDGED, jobs=(_first(case).id,))
    of_room = standing.verdict is Verdict.MISSED
    why = not_modelled(case.snapshot, SAID if of_room else ahead - {PREFERENCE, CONTRACT})
    if why and standing.verdict in (Verdict.MISSED, Verdict.SUBOPTIMAL):
        return replace(standing, verdict=Verdict.UNJUDGED, reason=why)
    return standing


def ended_text(case: Case) -> str:
    """Return why it is not judged who would have needed the hosts of jobs that ended."""
    return f"when the jobs on {case.ended} ended is not known"


def _stand_in_pod(case: Case, options: Options, keep: Keep | None) -> Standing:
    """Compare a decision on a pod of cubes with its rules; it is counted in free cubes."""
    instance, broken = read_cubes(case.snapshot), case.fault
    result = solve(prepare_cubes(case.snapshot), "exact", options)
    require_checked(case.snapshot, result)
    if keep is not None:
        keep((FREE, result))
    figures: list[int] | None = None
    try:
        figures = None if broken is not None else value_of(instance, chips_started(instance, case))
    except RefusedError as error:
        broken = str(error)
    levels = _beside(result, figures)
    if figures is None:
        return Standing(Verdict.INVALID, broken, levels)
    verdict, differs = _verdict(levels, case)
    used = fewest = None
    if case.started and differs not in STARTED_LEVELS:
        used, fewest = cubes_taken(case, result, figures[1])
    return Standing(verdict, None, levels, differs, differs or levels[1].name, used, fewest)


def under(case: Case, contract: str) -> tuple[Snapshot, dict[str, str]]:
    """Return a snapshot held to a contract, and why this refuses requests, by their ids.

    Requests whose own rules do not go together with it keep these alone. Slurm refused requests of
    several parts before 25.05.
    """
    held = held_to(case.snapshot, contract)
    own = {one.request or "": one.value for one in held.left_out if one.option == CONTRACT}
    certain = {one.request for one in held.left_out if one.certain}
    if case.outcome is Decided.REFUSED:
        own |= {r.id: "a request without parts" for r in held.queue if r.parts is not None}
        certain |= own.keys()
    refused = {
        name: f"{name}: {contract} refuses it: expected {value}"
        for name, value in own.items()
        if name in certain
    }
    left_out = [one for one in held.left_out if one.option != CONTRACT]
    held = held.model_copy(update={"left_out": left_out})
    return with_queue(held, [r for r in held.queue if r.id not in refused]), refused


def in_doubt(case: Case, contract: str | None) -> Case:
    """Return a case in which nobody is blamed for requests that keep their own rules alone."""
    if contract is None or not is_of_blocks(case):
        return case
    held = held_to(case.snapshot, contract).left_out
    doubts = {
        one.request or "": f"{contract}: expected {one.value}"
        for one in held
        if one.option == CONTRACT and not one.certain
    }
    return replace(case, doubts={**doubts, **case.doubts})


# ---- The rules -----------------------------------------------------------------------------------


def started_in(
    instance: Instance, started: Sequence[tuple[str, Taken]]
) -> Iterator[tuple[Asked, Place]]:
    """Yield which requests were started where; raise `RefusedError` unless each keeps its rules."""
    by_id, seen = {asked.id: asked for asked in instance.queue}, set[str]()
    for name, taken in started:
        if name not in by_id or name in seen:
            raise RefusedError(f"{name} is no request that waits, or starts twice")
        seen.add(name)
        try:
            place = _place(instance, by_id[name], taken)
            require_place(instance, by_id[name], place)
        except RefusedError as error:
            raise RefusedError(f"{name}: {error}") from None
        yield by_id[name], place


def _place(instance: Instance, asked: Asked, taken: Taken) -> Place:
    if {*taken} != {*asked.part_names}:
        raise RefusedError("its parts are not those of the request")
    numbers, place = instance.numbers, []
    for name in asked.part_names:
        for host, units in taken[name].items():
            if host not in numbers:
                raise RefusedError(f"{host} is no host")
            if units < 1:
                raise RefusedError(f"{number_of(units, 'unit')} on {host}")
        place.append({numbers[host]: units for host, units in taken[name].items()})
    return place


def _figures(instance: Instance, started: Sequence[tuple[Asked, Place]]) -> list[int]:
    nothing = [0] * len(instance.levels)
    each = [worth(instance, asked, place) for asked, place in started]
    return [sum(level) for level in zip(nothing, *each, strict=True)]


def has_room(case: Case) -> bool:
    """Whether some request that was not started asks for no more units than hosts can hold."""
    if not case.snapshot.written.domain_levels:
        return has_chips(case)
    instance, started = read_instance(case.snapshot), {name for name, _ in case.started}
    return any(
        all(sum(holds(own, p.takes) for own in instance.free) >= p.units for p in asked.parts)
        for asked in instance.queue
        if asked.id not in started
    )


# ---- The optimum ---------------------------------------------------------------------------------


def _proven(snapshot: Snapshot, options: Options) -> HierarchyResult:
    result: HierarchyResult = solve(prepare_hierarchy(snapshot), "exact", options)
    require_checked(snapshot, result)
    return result


def require_checked(snapshot: Snapshot, result: AnyResult) -> None:
    """Raise `TopoplaceError` unless the checker confirms a result."""
    report = check_document(result)
    if not report.holds:
        raise TopoplaceError(
            f"{snapshot.name}: a claim does not hold; please report this\n{report}"
        )


def counted_on(snapshot: Snapshot, levels: Sequence[str]) -> Snapshot:
    """Return a snapshot without the levels that do not count and that no request names.

    The level of the hosts stays. A domain of a level that stays keeps its hosts.
    """
    model = _machine_of(snapshot)
    stays = {*levels, model.levels[-1], *(model.levels[:1] if model.fabrics else ())}
    for request in snapshot.queue:
        stays |= _named(request)
    kept = [level for level, name in enumerate(model.levels) if name in stays]
    if len(kept) == len(model.levels):
        return snapshot
    machine = hierarchy_of(model)
    hosts = []
    for host, name in enumerate(machine.host_names):
        numbers = machine.domain_of[kept[:-1], host]
        domains = [
            f"{model.levels[lv]}-{number}" for lv, number in zip(kept, numbers, strict=False)
        ]
        amounts = dict(zip(machine.resources, machine.capacity[host].tolist(), strict=True))
        hosts.append(HostsModel(hosts=name, domains=domains, capacity=amounts))
    fewer = HierarchyModel(
        kind="hierarchy",
        name=model.name,
        levels=[model.levels[level] for level in kept],
        hosts=hosts,
        fabrics=model.fabrics,
        source=model.source,
    )
    return snapshot.model_copy(update={"machine": fewer})


def _machine_of(snapshot: Snapshot) -> HierarchyModel:
    return snapshot.on(HierarchyModel, "a hierarchy, as pods are judged before")


def _named(request: Request) -> set[str]:
    """Return the levels that a request names."""
    found: set[str | None] = set()
    asked: list[Request | Part] = [request, *(request.parts or ())]
    for one in asked:
        found |= {one.required, one.preferred, one.exclusive, one.balance}
        found |= {segment.level for segment in one.segments or ()}
        found |= {None if one.spread is None else one.spread.level}
        found |= {apart.level for apart in one.apart or ()}
    found |= {None if request.at_most is None else request.at_most.level}
    return {level for level in found if level is not None}


# ---- One compared with the other -----------------------------------------------------------------


def _judged(
    case: Case, result: HierarchyResult, figures: Sequence[int] | None, broken: str | None
) -> Standing:
    levels = _beside(result, figures)
    if figures is None:
        return Standing(Verdict.INVALID, broken, levels)
    machine = _machine_of(result.instance)
    machine_levels = machine.levels[int(machine.fabrics) :]
    counted = {*STARTED_LEVELS, *machine_levels}
    verdict, differs = _verdict([lv for lv in levels if lv.name in counted], case)
    level = differs or machine_levels[max(0, len(machine_levels) - 2)]
    used = fewest = None
    if case.started and differs not in STARTED_LEVELS:
        by_name = {lv.name: lv for lv in levels}
        used, fewest = by_name[level].decision, by_name[level].bound
    if case.left_out and verdict not in (Verdict.OPTIMAL, Verdict.RIGHTLY_WAITING):
        verdict = Verdict.UNJUDGED
    verdict = Verdict.UNJUDGED if case.doubtful else verdict
    jobs = _jobs(case, result, verdict)
    return Standing(verdict, None, levels, differs, level, used, fewest, jobs=jobs)


def _jobs(case: Case, result: HierarchyResult, verdict: Verdict) -> tuple[str, ...]:
    """Return the requests that a verdict is about."""
    started = {name for name, _ in case.started}
    if verdict is Verdict.UNJUDGED and case.doubtful:
        return case.doubtful
    if verdict is Verdict.MISSED and result.solution is not None:
        best = {placement.request for placement in result.solution.placements}
        return tuple(r.id for r in case.snapshot.queue if r.id in best - started)
    return tuple(r.id for r in case.snapshot.queue if not started or r.id in started)


def _first(case: Case) -> Request:
    """Return the first request of the queue that was not started."""
    started = {name for name, _ in case.started}
    return next(r for r in candidates(case.snapshot) if r.id not in started)


def _first_fits(case: Case, options: Options) -> bool:
    """Whether the first request that waits could have started along with the started ones."""
    requests = {request.id: request for request in prepare_hierarchy(case.snapshot).requests}
    machine = hierarchy_of(_machine_of(case.snapshot))
    beside = list(case.snapshot.running)
    for name, taken in case.started:
        for part in requests[name].parts:
            amounts = dict(zip(machine.resources, part.takes, strict=True))
            for host, units in taken[part.name].items():
                takes = {resource: amount * units for resource, amount in amounts.items()}
                own = f"{name}/{part.name or ''}/{host}"
                beside.append(RunningJob(id=own, nodes=host, takes=takes))
    alone = with_queue(case.snapshot.model_copy(update={"running": beside}), [_first(case)])
    found = _proven(counted_on(alone, case.levels), options)
    return found.solution is not None and bool(found.solution.placements)


def _beside(
    result: HierarchyResult | CubesResult, figures: Sequence[int] | None
) -> tuple[Level, ...]:
    """Return the levels of a result, with the figures of a decision."""
    own = [None] * len(result.levels) if figures is None else figures
    return tuple(
        Level(lv.name, lv.sense, n, lv.objective, lv.bound, level_label(result.instance, lv.name))
        for n, lv in zip(own, result.levels, strict=True)
    )


def _verdict(levels: Sequence[Level], case: Case) -> tuple[Verdict, str | None]:
    """Return the verdict on value and domains, and the first level that is not proven optimal."""
    for k, level in enumerate(levels):
        sign = -1 if level.sense == "max" else 1
        assert level.decision is not None
        own = sign * level.decision
        bound = None if level.bound is None else sign * level.bound
        if bound is not None and own < bound:
            raise TopoplaceError(
                f"{case.snapshot.name}: the decision has {level.decision} {level.name}, better "
                f"than the bound of {level.bound}; please report this"
            )
        if level.best is not None and own > sign * level.best:
            missed = k == 0 or level.name in STARTED_LEVELS
            return (Verdict.MISSED if missed else Verdict.SUBOPTIMAL), level.name
        if own != bound:
            return Verdict.UNPROVEN, level.name
        if level.decision != level.best and k + 1 < len(levels):
            return Verdict.UNPROVEN, levels[k + 1].name  # whose bound is of another placement
    return (Verdict.OPTIMAL if case.started else Verdict.RIGHTLY_WAITING), None


# ---- A row ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The result of an audit for a decision.

    Attributes
    ----------
    request
        The request, in words.
    has_room
        Whether a request waits that asks for no more units than hosts can hold.
    free
        Compared with the optimum under the rules of the requests alone.
    contract
        The same under the contract too; None unless one is named and the machine has blocks.
    fragmentation
        Slurm's own figure; None on machines without Slurm's blocks.
    held
        Requests that are not judged, and which options hold them.
    held_by
        How many requests each of these options holds, as text.
    """

    instance: str
    group: str
    request: str
    outcome: Decided
    has_room: bool
    left_out: tuple[str, ...]
    free: Standing
    contract: Standing | None
    fragmentation: Fragmentation | None = None
    held: Mapping[str, str] = field(default_factory=dict)
    held_by: str = ""

    @property
    def standing(self) -> Standing:
        """The comparison under all rules."""
        return self.free if self.contract is None else self.contract

    @property
    def verdict(self) -> Verdict:
        """The verdict under all rules."""
        return self.standing.verdict

    @property
    def why(self) -> str:
        """The broken rule, the differing level, or the options the snapshot lacks, in words."""
        standing = self.standing
        if standing.broken or standing.reason:
            return standing.broken or standing.reason
        words = []
        by_name: Mapping[str, Level] = {level.name: level for level in standing.levels}
        level = by_name.get(standing.differs or "")
        if level is not None:
            proven = "" if level.is_proven else f" (at best {level.bound})"
            words.append(f"{level.decision} {short(level.label)}, {level.best} possible{proven}")
        if standing.strands:
            words.append(f"{standing.strands} stranded more than needed")
        words += [f"not said: {' '.join(self.left_out)}"] if self.left_out else []
        if self.held:
            own = [f"{name} {text}" for name, text in self.held.items()]
            words = own if len(own) == 1 else [f"{len(own)} held ({self.held_by})"]
        elif standing.verdict is Verdict.UNJUDGED and not self.left_out:
            words.append(f"{standing.jobs[0]} is the first that waits, and does not fit")
        return "; ".join(words)


def judge(case: Case, contract: str | None, options: Options, keep: Keep | None = None) -> Row:
    """Judge a decision (see `stand`), under a contract only if it can be one of that scheduler."""
    held = contract is not None and is_of_blocks(case)
    row = Row(
        case.snapshot.name,
        case.group,
        in_words(case.snapshot.queue),
        case.outcome,
        has_room(case),
        case.left_out,
        stand(_without_rule(case) if held else case, None, options, keep),
        stand(case, contract, options, keep) if held else None,
        held={name: hold_text(case.held[name]) for name in case.doubtful},
        held_by=counts_text(one for name in case.doubtful for one in case.held[name]),
    )
    return replace(row, fragmentation=_fragmentation(case, row)) if is_of_blocks(case) else row


def _without_rule(case: Case) -> Case:
    """Return a case without what is said of a rule that it is held to besides."""
    left_out = [one for one in case.snapshot.left_out if one.option != CONTRACT]
    return replace(case, snapshot=case.snapshot.model_copy(update={"left_out": left_out}))


def _fragmentation(case: Case, row: Row) -> Fragmentation:
    hosts = {host for _, taken in case.started for own in taken.values() for host in own}
    valid = row.verdict is not Verdict.INVALID
    left = after(case.snapshot, hosts) if valid else None
    return Fragmentation(before(case.snapshot), left, row.standing.fragmentation)


def is_of_blocks(case: Case) -> bool:
    """Whether a decision is one about the blocks of Slurm's topology/block."""
    return case.snapshot.written.has_blocks


def in_words(queue: Sequence[Request]) -> str:
    """Return requests in words: a line for one, their number for several."""
    if len(queue) != 1:
        return f"{number_of(len(queue), 'request')}"
    (request,) = queue
    if request.parts is not None:
        return " + ".join(_asked(part) for part in request.parts)
    return _asked(request)


def _asked(one: Request | Part) -> str:
    words = [number_of(one.nodes, "unit")]
    words += [f"in {s.size}s per {short(s.level)}" for s in one.segments or ()]
    for rule in ("required", "preferred", "exclusive", "balance"):
        level = getattr(one, rule)
        words += [f"{rule} {short(level)}"] if level is not None else []
    words += [f"apart per {short(a.level)}" for a in one.apart or ()]
    return ", ".join(words)


def short(level: str) -> str:
    """Return a level's name without the domain of a node label: ``rack`` of ``x.com/rack``."""
    return level.rpartition("/")[2] or level
