"""One run of an external allocator on a snapshot: its answer checked, then scored like ours.

Answers are strict documents (docs/guide/external-allocators.md). The rules are those of
docs/proofs/placement.md, "The problem", and of docs/proofs/tree.md. They name what the checker
(`certify`) would only refuse, let it judge the rest on a torus, and share no code with the
placement methods.
"""

from __future__ import annotations

import json
import signal
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field

from topoplace.certify.check import check_document
from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import Instance, Job, Request, prism_of, read_instance
from topoplace.certify.torus.starts import read_starts
from topoplace.errors import InputError, number_of
from topoplace.kinds import kind_named, kind_of_machine
from topoplace.machine import Prism, Torus, format_node_set, parse_node_set, prism_links
from topoplace.machine.cubes import Cubes
from topoplace.placement.cubes.problem import Placed as OnCubes
from topoplace.placement.torus.outcome import Scattered
from topoplace.placement.torus.problem import Candidate, PlacementProblem, in_prisms
from topoplace.result import Interference, Placement, PlacementResult, Result, Solution
from topoplace.snapshot.files import parse_document
from topoplace.snapshot.hierarchy_state import HierarchyRequest, HierarchyState
from topoplace.snapshot.machines import AnyState
from topoplace.snapshot.schema import (
    Communication,
    Model,
    Name,
    NodeSet,
    PrismModel,
    Snapshot,
)
from topoplace.solving import Options, Outcome, result_of
from topoplace.solving.solve import problem_of, require_no_order
from topoplace.study.external.allocator import (
    DEFAULT_SECONDS,
    MAX_ANSWER_BYTES,
    MAX_BREACHES,
    Allocator,
    Breach,
    End,
    Fault,
    Run,
    VerdictError,
    last_words,
    placements_of,
    run_function,
    run_program,
)
from topoplace.types import BoolArray, IntArray

# ---- The rules that an answer may break ----------------------------------------------------------

PLACEMENTS_SCHEMA: Final = "topoplace.placements/1"

SchemaField = Annotated[Literal["topoplace.placements/1"], Field(alias="schema")]


def _as_set(nodes: object) -> object:
    """Return a list of numbers as a node set."""
    numbers = isinstance(nodes, list) and all(isinstance(one, int) and one >= 0 for one in nodes)
    return format_node_set(nodes) if numbers else nodes  # type: ignore[arg-type]  # it is a list


class PlacedJob(Model):
    """A request that starts on a torus: its nodes, and its prism unless nodes are scattered.

    One in segments has `other_prisms`, too, in ascending order of origins.
    """

    request: Name
    nodes: Annotated[NodeSet, BeforeValidator(_as_set)]
    prism: PrismModel | None = None
    other_prisms: list[PrismModel] | None = None


class Placements(Model):
    """Who starts where on a torus or mesh; requests that are not listed do not start."""

    schema_version: SchemaField
    placements: list[PlacedJob]


class TreePlacedJob(Model):
    """A request that starts on a tree: the node of every rank, in rank order."""

    request: Name
    nodes: list[Annotated[str, Field(max_length=1024)]]


class TreePlacements(Model):
    """Who starts where on a tree machine; requests that are not listed do not start."""

    schema_version: SchemaField
    placements: list[TreePlacedJob]


def torus_breaches(
    snapshot: Snapshot, interference: Interference, answer: Placements
) -> list[Breach]:
    """Return the rules an answer breaks, at most `MAX_BREACHES`; none if it is a solution.

    Placements without a prism may share links: they are scored as not conforming, like the
    node orders of our own. `snapshot` has its machine written out.
    """
    return _TorusJudge(read_instance(snapshot, interference)).breaches_of(answer.placements)


def tree_breaches(state: HierarchyState, answer: TreePlacements) -> list[Breach]:
    """Return the rules an answer breaks, at most `MAX_BREACHES`; none if it is a solution."""
    return _TreeJudge(state).breaches_of(answer.placements)


class _Judge:
    """Collects the breaches of an answer, placement by placement."""

    def __init__(self, queued: Collection[str], running: Collection[str]) -> None:
        self._queued, self._running = queued, running
        self._placed: set[str] = set()
        self._breaches: list[Breach] = []

    def breaches_of(self, placements: Sequence[Any]) -> list[Breach]:
        for placement in placements:
            name = placement.request
            if name not in self._queued:
                runs = name in self._running
                self._breach(name, "runs already" if runs else "is no request of the queue")
            elif name in self._placed:
                self._breach(name, "is placed twice")
            else:
                self._placed.add(name)
                self._judge(placement)
        return self._breaches[:MAX_BREACHES]

    def _judge(self, placement: Any) -> None:
        """Judge a placement alongside the running jobs and the placements before it."""
        raise NotImplementedError

    def _breach(
        self, request: str, text: str, *, node: int | str | None = None, link: int | None = None
    ) -> None:
        self._breaches.append(Breach(f"{request} {text}", request, node, link))


class _TorusJudge(_Judge):
    """Names wrong nodes, and who meets whom; has the checker judge the rest of each placement."""

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance.by_id, {job.id for job in instance.jobs})
        self._instance, torus = instance, instance.torus
        self._names: list[str] = []  # of jobs; the tables below hold their positions, or -1
        self._node_user = np.full(torus.num_nodes, -1)
        self._router_user, self._prism_user = np.full((2, torus.num_routers), -1)
        self._link_users = {sharing: np.full(torus.num_links, -1) for sharing in Communication}
        for job in instance.jobs:
            self._use_links(job)

    def _judge(self, placement: PlacedJob) -> None:
        instance, torus, known = self._instance, self._instance.torus, len(self._breaches)
        request = instance.by_id[placement.request]
        try:
            nodes = parse_node_set(placement.nodes, torus.num_nodes, "nodes")
            prism = None if placement.prism is None else prism_of(torus, placement.prism)
            others = [prism_of(torus, model) for model in placement.other_prisms or ()]
        except InputError as error:
            self._breach(request.id, f"has {error}")
            return
        routers, links = np.unique(nodes // torus.nodes_per_router), nodes[:0]
        if prism is not None:
            routers = np.concatenate([one.routers(torus) for one in (prism, *others)])
            if request.sharing is not Communication.NONE:
                links = prism_links(torus, prism)
        job = Job(request.id, nodes, routers, prism, links, request.sharing)
        self._judge_nodes(job, request)
        self._judge_overlaps(job)
        user = self._use_links(job)
        self._node_user[nodes] = self._router_user[routers] = user
        if prism is not None:
            self._prism_user[routers] = user
        if len(self._breaches) == known:
            model = Placement(**placement.model_dump())
            alone = Solution(placements=[model], num_shared_links=0, conforming=False)
            try:
                read_starts(instance, alone)
            except (RefusedError, InputError) as error:
                self._breaches.append(Breach(str(error), request.id))

    def _judge_nodes(self, job: Job, request: Request) -> None:
        """Report nodes that the job may not have, once for every reason."""
        instance, torus = self._instance, self._instance.torus
        routers, classes = job.nodes // torus.nodes_per_router, instance.node_class[job.nodes]
        service, held = classes < 0, instance.held[routers] & (classes >= 0)
        down = ~instance.usable[job.nodes] & ~service & ~held
        kinds = (self._instance.kinds[kind][job.nodes] for kind in request.kinds)
        foreign = min((~own & ~service for own in kinds), key=np.count_nonzero)
        if held.any():
            router = routers[held][0]
            holder = next(other.id for other in instance.jobs if router in other.routers)
            self._breach_of_node(job, held, f" on router {router}, held by running job {holder}")
        self._breach_of_node(job, service, ", a service node")
        self._breach_of_node(job, down, ", which is down")
        self._breach_of_node(job, foreign, ", which is not of its class or sets")
        if job.prism is not None:
            outside = ~np.isin(routers, job.routers)
            self._breach_of_node(job, outside, f" outside its prism {job.prism.text}")

    def _breach_of_node(self, job: Job, wrong: BoolArray, why: str) -> None:
        if wrong.any():
            node = int(job.nodes[wrong.argmax()])
            self._breach(job.id, f"has node {node}{why}{_and_more(wrong)}", node=node)

    def _judge_overlaps(self, job: Job) -> None:
        """Report a node, a router of a prism, and a link that another job has as well."""
        taken = self._node_user[job.nodes]
        routers = (self._prism_user if job.prism is None else self._router_user)[job.routers]
        if (taken >= 0).any():
            self._breach_of_node(job, taken >= 0, f" of {self._names[taken[taken >= 0][0]]}")
        elif (routers >= 0).any():
            router, other = int(job.routers[(routers >= 0).argmax()]), routers[routers >= 0][0]
            text = f"and {self._names[other]} both have router {router}, one in its prism"
            self._breach(job.id, text)
        user = self._link_users[Communication.STRICT][job.links]
        if job.sharing is not Communication.TOLERANT:
            tolerant = self._link_users[Communication.TOLERANT][job.links]
            user = np.where(user >= 0, user, tolerant)
        shared = user >= 0
        if shared.any():
            link, other = int(job.links[shared.argmax()]), self._names[user[shared.argmax()]]
            where = _link_text(self._instance.torus, link)
            self._breach(job.id, f"shares {where} with {other}{_and_more(shared)}", link=link)

    def _use_links(self, job: Job) -> int:
        """Note who uses links; return its position among the names."""
        self._names.append(job.id)
        self._link_users[job.sharing][job.links] = len(self._names) - 1
        return len(self._names) - 1


def _link_text(torus: Torus, link: int) -> str:
    """Return a link as ``link 57 (3,0,1 to 3,1,1)``."""
    dim, router = divmod(link, torus.num_routers)
    start = torus.coords(router)
    end = tuple((c + 1) % torus.shape[d] if d == dim else c for d, c in enumerate(start))
    return f"link {link} ({','.join(map(str, start))} to {','.join(map(str, end))})"


def _and_more(wrong: BoolArray) -> str:
    more = int(wrong.sum()) - 1
    return f" (and {more} more)" if more else ""


class _TreeJudge(_Judge):
    def __init__(self, state: HierarchyState) -> None:
        self._requests = {request.id: request for request in state.requests}
        super().__init__(self._requests, {job.id for job in state.running})
        self._machine, names = state.machine, state.machine.host_names
        self._numbers = state.machine.numbers
        # By node, why nobody else may have it.
        self._taken = {
            names[node]: ", which is down" for node in np.flatnonzero(state.free[:, 0] == 0)
        }
        for job in state.running:
            for node in job.hosts:
                self._taken[names[node]] = f", held by running job {job.id}"

    def _judge(self, placement: TreePlacedJob) -> None:
        request, nodes = self._requests[placement.request], placement.nodes
        if len(nodes) != request.nodes:
            self._breach(
                request.id, f"has {number_of(len(nodes), 'node')} and wants {request.nodes}"
            )
        own = set()
        for name in nodes:
            if name not in self._numbers:
                text = f"has {name}, which is no node of the machine"
                self._breach(request.id, text, node=name)
            elif name in self._taken:
                why = " twice" if name in own else self._taken[name]
                self._breach(request.id, f"has node {name}{why}", node=name)
            else:
                self._taken[name] = f" of {request.id}"
                own.add(name)
        self._judge_leaves(request.id, [name for name in nodes if name in self._numbers])

    def _judge_leaves(self, request: str, nodes: Sequence[str]) -> None:
        """Report nodes of a request that no switch is above."""
        leaf_of = self._machine.leaf_of[[self._numbers[name] for name in nodes]]
        fabrics, first = np.unique(self._machine.above_leaves[0][leaf_of], return_index=True)
        if len(fabrics) > 1:
            one, other = (nodes[k] for k in first[:2])
            text = f"has {one} and {other}: no switch is above both"
            self._breach(request, text, node=one)


# ---- A run ---------------------------------------------------------------------------------------

INPUT_SCHEMA: Final = "topoplace.allocator-input/1"

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True)
class Trial:
    """The outcome: a result scored by us, without a solution if there is a refusal.

    `refusal` is the verdict as an error to raise, print or store, None if the answer counts;
    `stderr` is the end of what the allocator wrote there.
    """

    snapshot: str
    allocator: str
    result: Result[Any, Any, Snapshot]
    refusal: VerdictError | None
    stderr: str

    @property
    def last_words(self) -> str:
        """The last line that the allocator wrote to stderr."""
        return last_words(self.stderr)


def try_on(state: AnyState, allocator: Allocator, options: Options) -> Trial:
    """Run an allocator on a snapshot.

    Raises
    ------
    InputError
        If its program cannot be started, or the machine is not of a kind that allocators take.
    """
    kind = kind_of_machine(state.snapshot.written.kind) or kind_named(state.kind)
    door: Door[Any] = kind.offered("allocator", "a machine", field="machine.kind")(state, options)
    require_no_order(door.problem, "an allocator of your own")
    run = _run(allocator, door.document(), options, has_rule=kind.has_rule)
    refuse = partial(VerdictError, state.snapshot, allocator.name, run.stderr)
    started: Any = None
    answer: Any = None
    refusal: VerdictError | None = None
    try:
        answer = _answer_of(run, door.model, door.breaches, refuse)
        started = door.solution(answer)
    except VerdictError as error:
        refusal = error
    hit = run.end is End.TIME_OUT
    outcome = Outcome(started, time_limit_hit=hit, versions={"allocator": allocator.source})
    result = result_of(door.problem, outcome, allocator.name, options, run.seconds)
    if answer is not None and refusal is None:
        result = door.kept(result, answer)
        claims = check_document(result).claims if door.judged else ()
        breaches = [Breach(claim.detail) for claim in claims if not claim.holds]
        if breaches:
            refusal = refuse(Fault.BREACH, breaches[0].text, breaches)
            nothing = replace(outcome, solution=None)
            result = result_of(door.problem, nothing, allocator.name, options, run.seconds)
    if refusal is not None:
        refusal.__cause__ = run.error
    return Trial(state.snapshot.name, allocator.name, result, refusal, run.stderr)


class Door(ABC, Generic[Answer]):
    """How an allocator is asked about a snapshot, and what its answers mean.

    Attributes
    ----------
    model
        The model of answers.
    problem
        What is solved.
    judged
        Whether the checker says what else a solution breaks, beyond `breaches`.
    """

    model: type[Answer]
    judged = True

    def __init__(self, state: Any, options: Options) -> None:
        self.state, self.options = state, options
        self.problem: Any = problem_of(state, options)

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return what the allocator reads."""

    @abstractmethod
    def breaches(self, answer: Answer) -> list[Breach]:
        """Return the rules that an answer breaks, at least those that keep it from a solution."""

    @abstractmethod
    def solution(self, answer: Answer) -> Any:
        """Return an answer that breaks none as a solution of the problem."""

    def kept(self, result: Any, answer: Answer) -> Any:
        """Return the result of a solution with what only the answer says."""
        return result


class TorusDoor(Door[Placements]):
    """That of a torus or mesh."""

    model = Placements
    judged = False  # all rules are among the breaches

    def document(self) -> dict[str, Any]:
        """Return the snapshot, and what its requests may have."""
        return torus_input(self.problem)

    def breaches(self, answer: Placements) -> list[Breach]:
        """Return the rules that an answer breaks."""
        return torus_breaches(self.state.snapshot, self.options.interference, answer)

    def solution(self, answer: Placements) -> list[Candidate | Scattered]:
        """Return the prisms or nodes of the requests that start."""
        return _torus_solution(self.problem, answer)

    def kept(self, result: Any, answer: Placements) -> Any:
        """Return the result with the allocator's own choice of nodes in its prisms."""
        return _with_nodes(self.problem, result, answer)


class TreeDoor(Door[TreePlacements]):
    """That of a switch tree, whatever counts on it."""

    model = TreePlacements

    def document(self) -> dict[str, Any]:
        """Return the snapshot, and the free nodes of every leaf."""
        return tree_input(self.state)

    def breaches(self, answer: TreePlacements) -> list[Breach]:
        """Return the rules that an answer breaks."""
        return tree_breaches(self.state, answer)

    def solution(self, answer: TreePlacements) -> Any:
        """Return the nodes of the requests that start; where domains count, units on each."""
        started = _tree_solution(self.state, answer)
        if self.state.kind == "allocation":
            return started
        return {q: _in_parts(self.state.requests[q], own) for q, own in started.items()}


class HierarchyDoor(TreeDoor):
    """That of a hierarchy: an answer has the host of every unit, part by part."""

    def document(self) -> dict[str, Any]:
        """Return the snapshot, and what is free on every host, by resource."""
        machine, state = self.state.machine, self.state
        free = {
            name: dict(zip(machine.resources, amounts, strict=True))
            for name, amounts in zip(machine.host_names, state.free.tolist(), strict=True)
            if any(amounts)
        }
        document: dict[str, Any] = state.snapshot.model_dump(mode="json")
        return document | {"free": free}

    def breaches(self, answer: TreePlacements) -> list[Breach]:
        """Return what keeps an answer from a solution; the checker judges that."""
        running = {job.id for job in self.state.running}
        return _HostJudge(self.state, running).breaches_of(answer.placements)


class _HostJudge(_Judge):
    def __init__(self, state: HierarchyState, running: Collection[str]) -> None:
        self._requests = {request.id: request for request in state.requests}
        self._numbers = state.machine.numbers
        super().__init__(self._requests, running)

    def _judge(self, placement: TreePlacedJob) -> None:
        request, nodes = self._requests[placement.request], placement.nodes
        if len(nodes) != request.nodes:
            has = number_of(len(nodes), "unit")
            self._breach(request.id, f"has {has} and wants {request.nodes}")
        for name in dict.fromkeys(nodes):
            if name not in self._numbers:
                self._breach(request.id, f"has {name}, which is no host of the machine", node=name)


def _in_parts(request: HierarchyRequest, hosts: IntArray) -> tuple[dict[int, int], ...]:
    """Return how many units of every part are on which hosts, given the host of every unit."""
    ends = np.cumsum([part.units for part in request.parts])[:-1]
    return tuple(dict(Counter(own.tolist())) for own in np.split(hosts, ends))


class CubesDoor(Door[Placements]):
    """That of a pod of cubes: an answer has the chips of every request."""

    model = Placements

    def document(self) -> dict[str, Any]:
        """Return the snapshot, and the free chips."""
        free = np.flatnonzero(self.state.free.ravel()).tolist()
        document: dict[str, Any] = self.state.snapshot.model_dump(mode="json")
        return document | {"free": free}

    def breaches(self, answer: Placements) -> list[Breach]:
        """Return what keeps an answer from a solution; the checker judges that."""
        queued = [request.id for request in self.state.requests]
        running = {job.id for job in self.state.snapshot.running}
        return _ChipJudge(queued, running, self.state.machine).breaches_of(answer.placements)

    def solution(self, answer: Placements) -> list[OnCubes]:
        """Return the cubes, or the part of one, of the requests that start."""
        number = {request.id: idx for idx, request in enumerate(self.state.requests)}
        machine = self.state.machine
        places = [_place_on_cubes(machine, placed.nodes) for placed in answer.placements]
        return [
            OnCubes(number[placed.request], *place)
            for placed, place in zip(answer.placements, places, strict=True)
            if place is not None
        ]


class _ChipJudge(_Judge):
    def __init__(self, queued: Collection[str], running: Collection[str], machine: Cubes) -> None:
        super().__init__(queued, running)
        self._machine = machine

    def _judge(self, placement: PlacedJob) -> None:
        try:
            place = _place_on_cubes(self._machine, placement.nodes)
        except InputError as error:
            self._breach(placement.request, f"has {error.brief}")
            return
        if place is None:
            text = "has chips that are neither whole cubes nor a box in one cube"
            self._breach(placement.request, text)


def _place_on_cubes(
    machine: Cubes, nodes: str
) -> tuple[tuple[int, ...], tuple[int, ...] | None, tuple[int, ...] | None] | None:
    """Return the cubes of chips, and origin and extents of a part of one; None if it is none."""
    chips = parse_node_set(nodes, machine.num_chips, "nodes")
    cubes, counts = np.unique(chips // machine.volume, return_counts=True)
    if len(cubes) and (counts == machine.volume).all():
        return tuple(cubes.tolist()), None, None
    at = np.stack(np.unravel_index(chips % machine.volume, machine.side))
    if len(cubes) != 1:
        return None
    low, extents = at.min(axis=1), np.ptp(at, axis=1) + 1
    whole = int(np.prod(extents)) == len(chips)
    return (tuple(cubes.tolist()), tuple(low.tolist()), tuple(extents.tolist())) if whole else None


def torus_input(problem: PlacementProblem) -> dict[str, Any]:
    """Return the input of an allocator: the snapshot, and what its requests may have.

    Every request has the number of its room in `rooms`: the routers a prism of it may hold, the
    nodes it may take there, and the links that running jobs close to it.
    """
    state = problem.state
    document = state.snapshot.model_dump(mode="json")
    rooms: dict[tuple[object, ...], dict[str, list[int]]] = {}
    for request, item in zip(problem.requests, document["queue"], strict=True):
        kind = request.classes, request.region, request.communication
        if kind not in rooms:
            allowed = problem.allowed_routers(request)
            own = np.any([state.of_kind(k) for k in request.classes], axis=0)
            nodes = state.usable & own & np.repeat(allowed, problem.torus.nodes_per_router)
            rooms[kind] = {
                "routers": np.flatnonzero(allowed).tolist(),
                "nodes": np.flatnonzero(nodes).tolist(),
                "closed_links": np.flatnonzero(problem.closed_links(kind[-1])).tolist(),
            }
        item["room"] = list(rooms).index(kind)
    return document | {"rooms": list(rooms.values())}


def tree_input(state: HierarchyState) -> dict[str, Any]:
    """Return the input of an allocator: the snapshot, and the free nodes of every leaf by name."""
    machine = state.machine
    free: dict[str, list[str]] = {name: [] for name in machine.leaf_names}
    for node in np.flatnonzero(state.free[:, 0]).tolist():
        free[machine.leaf_names[machine.leaf_of[node]]].append(machine.host_names[node])
    return state.snapshot.model_dump(mode="json") | {"free": free}


def _run(
    allocator: Allocator, document: dict[str, Any], options: Options, *, has_rule: bool
) -> Run:
    seconds = DEFAULT_SECONDS if options.time_limit is None else options.time_limit
    told = {"TOPOPLACE_TIME_LIMIT": f"{seconds:g}", "TOPOPLACE_SEED": str(options.seed)}
    if has_rule:
        told["TOPOPLACE_INTERFERENCE"] = str(options.interference)
    document |= {"schema": INPUT_SCHEMA}
    if allocator.function is not None:
        return run_function(allocator.function, document, seconds, placements_of)
    arguments = [word.replace("{seconds}", f"{seconds:g}") for word in allocator.arguments]
    text = json.dumps(document, ensure_ascii=False).encode()
    return run_program(arguments, text, seconds, told | allocator.environment)


def _answer_of(
    run: Run,
    model: type[Answer],
    breaches_of: Callable[[Answer], list[Breach]],
    refuse: Callable[..., VerdictError],
) -> Answer:
    """Return the answer of a run; raise the verdict on it if it does not count."""
    if run.end is End.TOO_MUCH:
        raise refuse(Fault.BAD_OUTPUT, f"it printed more than {MAX_ANSWER_BYTES >> 20} MiB")
    if run.end is End.RAISED:
        raise refuse(Fault.FAILED, f"it raised {last_words(run.stderr)}")
    if run.end is End.EXITED and run.code:
        how = f"exit code {run.code}"
        if run.code < 0:
            how = f"ended by signal {-run.code} ({signal.strsignal(-run.code)})"
        raise refuse(Fault.FAILED, _with_words(how, run))
    try:
        answer = parse_document(run.stdout, model, PLACEMENTS_SCHEMA, "answer")
    except InputError as error:
        if run.end is End.TIME_OUT:
            raise refuse(Fault.TIME_OUT, "no answer within the time limit") from None
        raise refuse(Fault.BAD_OUTPUT, _with_words(error.brief, run)) from None
    breaches = breaches_of(answer)
    if breaches:
        more = f" (and {len(breaches) - 1} more)" if len(breaches) > 1 else ""
        raise refuse(Fault.BREACH, breaches[0].text + more, breaches)
    return answer


def _with_words(text: str, run: Run) -> str:
    said = last_words(run.stderr)
    return f'{text}; it said "{said}"' if said else text


def _tree_solution(state: HierarchyState, answer: TreePlacements) -> dict[int, IntArray]:
    number = {request.id: idx for idx, request in enumerate(state.requests)}
    node = state.machine.numbers
    return {
        number[placed.request]: np.array([node[name] for name in placed.nodes], dtype=np.int64)
        for placed in answer.placements
    }


def _torus_solution(problem: PlacementProblem, answer: Placements) -> list[Candidate | Scattered]:
    number = {request.id: idx for idx, request in enumerate(problem.requests)}
    started: list[Candidate | Scattered] = []
    for placed in answer.placements:
        idx, model = number[placed.request], placed.prism
        if model is None:
            nodes = parse_node_set(placed.nodes, problem.torus.num_nodes)
            started.append(Scattered(idx, nodes))
        else:
            models = [model, *(placed.other_prisms or ())]
            prisms = (Prism(tuple(one.origin), tuple(one.extents)) for one in models)
            started.append(in_prisms(idx, prisms))
    return started


def _with_nodes(
    problem: PlacementProblem, result: PlacementResult, answer: Placements
) -> PlacementResult:
    """Return the result with the allocator's own choice of nodes in its prisms."""
    assert result.solution is not None
    chosen = {
        p.request: format_node_set(parse_node_set(p.nodes, problem.torus.num_nodes).tolist())
        for p in answer.placements
    }
    placements = [
        p.model_copy(update={"nodes": chosen[p.request]}) for p in result.solution.placements
    ]
    solution = result.solution.model_copy(update={"placements": placements})
    return result.model_copy(update={"solution": solution})
