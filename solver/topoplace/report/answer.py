"""What starts and where, and why the rest waits: for the screen, pages, host lists and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from topoplace.errors import number_of
from topoplace.machine import Prism, format_node_set, parse_node_set
from topoplace.machine.hostlist import NodeLists, expand_host_list, format_host_list
from topoplace.report.repack import before_and_after
from topoplace.report.text import csv_of, plain_table
from topoplace.result import Fraction as FractionModel
from topoplace.result import PlacementResult, Result, Status
from topoplace.result.cubes import CubesResult
from topoplace.result.hierarchy import HierarchyResult, Share
from topoplace.result.mapping import MappingResult
from topoplace.result.objects import ObjectsResult
from topoplace.result.repack import RepackResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.cubes_state import CubesRequest, prepare_cubes
from topoplace.snapshot.held import hold_text, holds_of
from topoplace.snapshot.hierarchy_state import HierarchyRequest, prepare_hierarchy
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.schema import HierarchyModel
from topoplace.snapshot.state import prepare
from topoplace.snapshot.tree_state import TreeRequest, prepare_tree
from topoplace.types import BoolArray, IntArray

AnyResult = Result[Any, Any, Any]

WIDTH = 100
"""Of a table where the width of the terminal is not known."""

_ON_TORUS = ("origin", "extents", "node_class", "score")
_MOST_ROWS = 15
_MOST_STANDING = 4
_LEAST_PLACE = 24
"""Characters of a place that are shown however narrow a terminal is."""


@dataclass(frozen=True)
class Start:
    """A request that starts.

    Attributes
    ----------
    nodes
        Numbers of its nodes: ascending on a torus, in the order of its ranks on a tree; on a
        hierarchy the hosts of its units, ascending, a host once for each.
    hosts
        The same nodes as text: ranges of numbers on a torus, a host list as Slurm has it on a
        tree (``srun -w``) or hierarchy, there with the units of each host if they are several.
    origin, extents
        Its prism in routers; None on trees, and where the nodes form no prism. On cubes, of a part
        of one, from its first chip on.
    node_class
        On a torus.
    cost
        By eq. (6) of Mishra 2020, on a tree.
    score
        Of the prism on level `shape`.
    cubes
        The cubes it is in.
    others
        The prisms of its further segments.
    """

    request: str
    nodes: tuple[int, ...]
    hosts: str
    origin: tuple[int, ...] | None = None
    extents: tuple[int, ...] | None = None
    node_class: str | None = None
    cost: Fraction | None = None
    score: int | None = None
    cubes: tuple[int, ...] | None = None
    others: tuple[Prism, ...] = ()

    @property
    def prism(self) -> str | None:
        """Extents and origin, such as ``4x4x8@0,0,8``; of several prisms one after another."""
        if self.origin is None or self.extents is None:
            return None
        prisms = (Prism(self.origin, self.extents), *self.others)
        return " ".join(prism.text for prism in prisms)


@dataclass(frozen=True)
class Rows:
    """A table of text: its header, its rows, and which columns are numbers."""

    header: Sequence[str]
    cells: Sequence[Sequence[str]]
    numbers: Sequence[int]


def exact(value: int | FractionModel) -> Fraction:
    """Return a number of a document."""
    if isinstance(value, FractionModel):
        return Fraction(value.numerator, value.denominator)
    return Fraction(value)


def decimal_text(value: Fraction) -> str:
    """Return a number as a decimal, a whole one without decimals."""
    return f"{value.numerator:,}" if value.denominator == 1 else f"{float(value):,.3f}"


def unit_of(result: AnyResult) -> str:
    """Return what requests are counted in: nodes, or on hierarchies that are no trees units."""
    of_units = isinstance(result, HierarchyResult) and isinstance(
        result.instance.machine, HierarchyModel
    )
    return "unit" if of_units else "node"


def started_names(result: AnyResult) -> set[str]:
    """Return the requests that start."""
    if result.solution is None:
        return set()
    on_tree = isinstance(result, AllocationResult)
    own = result.solution.allocations if on_tree else result.solution.placements
    return {start.request for start in own}


def starts_of(result: AnyResult) -> list[Start]:
    """Return the requests that start, in the order of the result; none without a solution."""
    if result.solution is None:
        return []
    if isinstance(result, RepackResult):
        return starts_of(before_and_after(result)[1])
    if isinstance(result, AllocationResult):
        return _on_tree(result)
    if isinstance(result, HierarchyResult):
        return _on_hierarchy(result)
    if isinstance(result, CubesResult):
        return _on_cubes(result)
    return _on_torus(result) if isinstance(result, PlacementResult) else []


def _on_tree(result: AllocationResult) -> list[Start]:
    names = prepare_tree(resolve_machine(result.instance)).tree.node_names
    numbers = {name: number for number, name in enumerate(names)}
    starts = []
    for own in result.solution.allocations if result.solution else ():
        nodes = tuple(numbers[name] for name in own.nodes)
        starts.append(Start(own.request, nodes, format_host_list(own.nodes), cost=exact(own.cost)))
    return starts


def _on_hierarchy(result: HierarchyResult) -> list[Start]:
    machine = prepare_hierarchy(resolve_machine(result.instance)).machine
    numbers = {name: number for number, name in enumerate(machine.host_names)}
    starts = []
    lists = NodeLists()
    for own in result.solution.placements if result.solution else ():
        shares = [share for part in own.parts for share in part.shares]
        names = [n for share in shares for n in lists.hosts(share.hosts, "hosts", share.units)]
        nodes = tuple(sorted(numbers[name] for name in names))
        starts.append(Start(own.request, nodes, _with_units(shares)))
    return starts


def _with_units(shares: Sequence[Share]) -> str:
    """Return hosts as text, each list with its units where these are more than one."""
    return " ".join(f"{s.hosts}*{s.units}" if s.units > 1 else s.hosts for s in shares)


def _on_cubes(result: CubesResult) -> list[Start]:
    num_chips = prepare_cubes(resolve_machine(result.instance)).machine.num_chips
    starts = []
    for own in result.solution.placements if result.solution else ():
        nodes = parse_node_set(own.nodes, num_chips, "nodes")
        origin, extents = None, None
        if own.prism is not None:
            origin, extents = tuple(own.prism.origin), tuple(own.prism.extents)
        place = origin, extents
        cubes = tuple(own.cubes)
        starts.append(Start(own.request, tuple(nodes.tolist()), own.nodes, *place, cubes=cubes))
    return starts


def _on_torus(result: PlacementResult) -> list[Start]:
    from topoplace.placement.torus.problem import Candidate, PlacementProblem  # noqa: PLC0415 - heavy

    state = prepare(resolve_machine(result.instance))
    problem = PlacementProblem(state, result.limits.interference)
    numbers = {request.id: number for number, request in enumerate(problem.requests)}
    starts = []
    for own in result.solution.placements if result.solution else ():
        number, score, origin, extents = numbers[own.request], None, None, None
        if own.prism is not None:
            origin, extents = tuple(own.prism.origin), tuple(own.prism.extents)
            score = problem.shape_score(Candidate(number, Prism(origin, extents)))
        nodes = parse_node_set(own.nodes, problem.torus.num_nodes, "nodes")
        starts.append(
            Start(
                own.request,
                tuple(map(int, nodes)),
                format_node_set(nodes),
                origin,
                extents,
                node_class=state.classes[problem.requests[number].class_idx],
                score=score,
                others=tuple(
                    Prism(tuple(p.origin), tuple(p.extents)) for p in own.other_prisms or ()
                ),
            )
        )
    return starts


def rows_of(result: AnyResult) -> Rows:
    """Return the table of what starts, every place in full."""
    on_tree = isinstance(result, AllocationResult)
    if isinstance(result, HierarchyResult):
        found = starts_of(result)
        cells = [[start.request, f"{len(start.nodes):,}", start.hosts] for start in found]
        return Rows(["request", f"{unit_of(result)}s", "hosts"], cells, (1,))
    if isinstance(result, CubesResult):
        cells = [
            [s.request, f"{len(s.nodes):,}", s.prism or "whole", format_node_set(s.cubes or ())]
            for s in starts_of(result)
        ]
        return Rows(["request", "nodes", "part", "cubes"], cells, (1,))
    cells = []
    for start in starts_of(result):
        cost, kind = decimal_text(start.cost or Fraction(0)), start.node_class or "-"
        place = start.hosts if on_tree else start.prism or f"nodes {start.hosts}"
        cells.append([start.request, f"{len(start.nodes):,}", cost if on_tree else kind, place])
    if on_tree:
        return Rows(["request", "nodes", "cost", "hosts"], cells, (1, 2))
    return Rows(["request", "nodes", "class", "prism"], cells, (1,))


def answer_table(result: AnyResult, width: int = WIDTH) -> list[str]:
    """Return lines that say what starts and where, shortened where there is much of it.

    Parameters
    ----------
    width
        Characters of a line; places that are longer are cut.
    """
    rows = rows_of(result)
    if not rows.cells:
        return []
    shown = [list(row) for row in rows.cells[:_MOST_ROWS]]
    columns = list(zip(rows.header, *shown, strict=True))[:-1]
    room = width - sum(max(map(len, column)) + 2 for column in columns)
    for row in shown:
        row[-1] = shortened(row[-1], max(_LEAST_PLACE, room))
    lines = [plain_table(rows.header, shown, right=rows.numbers)]
    more = len(rows.cells) - len(shown)
    if more:
        lines.append(f"... and {more:,} more in the result file")
    return lines


def shortened(text: str, most: int) -> str:
    """Return a text, or the start of it with dots where it has too many characters."""
    return text if len(text) <= most else f"{text[: most - 4].rstrip(',')} ..."


def hostlist_text(result: AnyResult) -> str:
    """Return a line per request that starts: its name and its nodes."""
    return "".join(f"{start.request} {start.hosts}\n" for start in starts_of(result))


def csv_text(result: AnyResult) -> str:
    """Return what starts as CSV with a header line; absent values are empty."""
    rows = []
    for start in starts_of(result):
        cost = None if start.cost is None else float(start.cost)
        rows.append([start.request, len(start.nodes), start.prism, start.hosts, cost, start.score])
    return csv_of(("request", "nodes", "prism", "hosts", "cost", "score"), rows)


def columns_of(result: AnyResult) -> dict[str, list[Any]]:
    """Return a result as named columns: a row for every request, or for every task of a mapping."""
    if isinstance(result, MappingResult | ObjectsResult):
        return _task_columns(result)
    if isinstance(result, RepackResult):
        return columns_of(before_and_after(result)[1])
    starts = {start.request: start for start in starts_of(result)}
    waits, names = waiting_texts(result), [request.id for request in result.instance.queue]
    own: Sequence[str] = ()
    if isinstance(result, CubesResult):
        own = ("cubes", "origin", "extents")
    elif not isinstance(result, HierarchyResult):
        own = ("cost",) if isinstance(result, AllocationResult) else _ON_TORUS
    return {
        "request": names,
        "num_nodes": [request.nodes for request in result.instance.queue],
        "starts": [name in starts for name in names],
        **{
            column: [getattr(starts.get(name), column, None) for name in names]
            for column in (*own, "nodes", "hosts")
        },
        "waits": [waits.get(name) for name in names],
    }


def _task_columns(result: MappingResult | ObjectsResult) -> dict[str, list[Any]]:
    from topoplace.machine import Torus  # noqa: PLC0415 - only here
    from topoplace.mapping.objects.problem import prepare_objects  # noqa: PLC0415 - heavy
    from topoplace.mapping.problem import prepare_mapping  # noqa: PLC0415 - heavy

    problem = (
        prepare_objects(result.instance).plain
        if isinstance(result, ObjectsResult)
        else prepare_mapping(result.instance)
    )
    nodes = np.array(result.solution.nodes if result.solution else [], dtype=np.int64)
    routers = problem.routers_of(nodes)
    columns: dict[str, list[Any]] = {"task": list(range(len(nodes)))}
    if isinstance(result, ObjectsResult):
        columns = {"object": columns["task"], "load": result.instance.loads[: len(nodes)]}
    columns |= {"node": nodes.tolist(), "router": routers.tolist()}
    if isinstance(problem.machine, Torus):
        for dim, at in enumerate(problem.machine.coordinates[routers].T.tolist()):
            columns[f"x{dim}"] = at
    return columns


# ---- Why requests wait --------------------------------------------------------------------------


def waiting_texts(result: AnyResult) -> dict[str, str]:
    """Return by request why it waits, in the order of the queue, where that is known."""
    held = holds_of(result.instance)
    texts = {name: hold_text(holds) for name, holds in held.items()} | _not_held_texts(result)
    return {
        request.id: texts[request.id] for request in result.instance.queue if request.id in texts
    }


def _not_held_texts(result: AnyResult) -> dict[str, str]:
    if result.solution is None:
        return {}
    if isinstance(result, PlacementResult):
        return {one.request: one.text for one in result.explanations}
    if isinstance(result, HierarchyResult):
        return _waiting_on_hierarchy(result)
    if isinstance(result, CubesResult):
        return _waiting_on_cubes(result)
    assert isinstance(result, AllocationResult)
    return _waiting_on_tree(result)


def waiting_rows(result: AnyResult) -> Rows:
    """Return the table of every request that does not start, and why as far as that is known."""
    begun, texts = started_names(result), waiting_texts(result)
    cells = [
        [request.id, f"{request.nodes:,}", texts.get(request.id, "no reason is known")]
        for request in result.instance.queue
        if request.id not in begun
    ]
    unit = "units" if isinstance(result, HierarchyResult) else "nodes"
    return Rows(["request", unit, "why it waits"], cells, (1,))


def _waiting_on_tree(result: AllocationResult) -> dict[str, str]:
    """Return why requests wait on a tree, from the result alone."""
    assert result.solution is not None
    state = prepare_tree(resolve_machine(result.instance))
    tree, free = state.tree, state.free
    started = {own.request for own in result.solution.allocations}
    taken = {name for own in result.solution.allocations for name in own.nodes}
    left = free & np.array([name not in taken for name in tree.node_names], dtype=bool)

    def most(nodes: BoolArray) -> int:
        """Return how many of some nodes one request can have: those below one root."""
        per_leaf = np.bincount(tree.leaf_of_node[nodes], minlength=tree.num_leaves)
        return max(int(per_leaf[list(root)].sum()) for root in tree.roots)

    num_free, most_free, most_left = int(free.sum()), most(free), most(left)

    def text(request: TreeRequest) -> str:
        wanted = f"{number_of(request.nodes, 'node')} wanted"
        if request.nodes > num_free:
            return f"{wanted}, {num_free:,} free"
        if request.nodes > most_free:
            most = f"the most below one root are {most_free:,}"
            return f"no fabric has {number_of(request.nodes, 'free node')}: {most}"
        if request.nodes <= most_left:
            return f"{wanted}, still free, but {result.method} left it out"
        if result.levels[0].status is Status.OPTIMAL:
            return "outbid: it fits alone, but the started jobs are worth as much or more"
        return "it fits alone, but not beside the started jobs"

    return {one.id: text(one) for one in state.requests if one.id not in started}


def _waiting_on_cubes(result: CubesResult) -> dict[str, str]:
    """Return why requests wait on cubes, from the result alone."""
    from topoplace.placement.cubes.problem import CubesProblem, Room  # noqa: PLC0415 - heavy

    state = prepare_cubes(resolve_machine(result.instance))
    problem = CubesProblem(state)
    left, starts = state.free.copy(), starts_of(result)
    for start in starts:
        left.ravel()[list(start.nodes)] = False

    def fits(idx: int, free: BoolArray) -> bool:
        room = Room(problem)
        room.free = free.copy()
        return room.place(idx) is not None

    def text(idx: int, request: CubesRequest) -> str:
        if request.num_cubes:
            wanted = f"{number_of(request.num_cubes, 'free cube')} wanted"
            none = f"{wanted}, {len(problem.free_cubes):,} there"
        else:
            wanted = f"{number_of(request.nodes, 'chip')} of one cube wanted"
            none = f"{wanted}, no part of such a shape is free"
        if not fits(idx, state.free):
            return none
        if fits(idx, left):
            return f"{wanted}, still there, but {result.method} left it out"
        if result.levels[0].status is Status.OPTIMAL:
            return "outbid: it fits alone, but the started jobs are worth as much or more"
        return "it fits alone, but not beside the started jobs"

    begun = {start.request for start in starts}
    every = enumerate(state.requests)
    return {request.id: text(idx, request) for idx, request in every if request.id not in begun}


def _waiting_on_hierarchy(result: HierarchyResult) -> dict[str, str]:
    """Return why requests wait on a hierarchy: where there is most room, and who stands there."""
    state = prepare_hierarchy(resolve_machine(result.instance))
    machine, started = state.machine, starts_of(result)
    left = state.free.copy()
    takes = {request.id: request for request in state.requests}
    names = {name: number for number, name in enumerate(machine.host_names)}
    for own in result.solution.placements if result.solution else ():
        for part, placed in zip(takes[own.request].parts, own.parts, strict=True):
            for share in placed.shares:
                hosts = [names[name] for name in expand_host_list(share.hosts, "hosts")]
                left[hosts] -= np.array(part.takes) * share.units
    begun = {start.request for start in started}

    def text(request: HierarchyRequest) -> str:
        for part in request.parts:
            takes = np.array(part.takes)
            used = takes > 0
            held = [(free[:, used] // takes[used]).min(axis=1) for free in (state.free, left)]
            level = machine.num_levels if part.required is None else part.required
            of = np.zeros(machine.num_hosts, dtype=np.int64)
            where = "the machine"
            if part.required is not None:
                of = machine.domain_of[level]
            most = [np.bincount(of, weights=own).astype(int) for own in held]
            best = int(most[0].argmax())
            if part.required is not None:
                where = f"{machine.levels[level]} {machine.domain_names[level][best]}"
            if most[0].max() < part.units:
                of_part = "" if part.name is None else f" of {part.name}"
                asked = f"{number_of(part.units, unit_of(result))}{of_part}"
                text = f"{asked} wanted, {most[0][best]:,} free in {where}"
                if machine.fabrics and level == 0:
                    fabric = machine.levels[0]
                    text = f"no {fabric} has {asked} free, at most {most[0][best]:,} in {where}"
                jobs = _standing(result, names, np.flatnonzero(of == best))
                return text + (f", where {jobs} run" if jobs else "")
        if result.levels[0].status is Status.OPTIMAL and not begun:
            return "no place keeps all its rules"
        if result.levels[0].status is Status.OPTIMAL:
            return "outbid: the started jobs are worth as much or more, or it fits nowhere alone"
        return "no place for it beside the started jobs was found"

    return {one.id: text(one) for one in state.requests if one.id not in begun}


def _standing(result: HierarchyResult, names: dict[str, int], hosts: IntArray) -> str:
    """Return the running jobs on some hosts, those that hold most of them first."""
    inside, counts = set(hosts.tolist()), {}
    for job in result.instance.running:
        held = [names[name] for name in expand_host_list(job.nodes, "nodes")]
        counts[job.id] = sum(host in inside for host in held)
    order = sorted((name for name, n in counts.items() if n), key=lambda name: -counts[name])
    more = f" and {len(order) - _MOST_STANDING} more" if len(order) > _MOST_STANDING else ""
    return ", ".join(order[:_MOST_STANDING]) + more
