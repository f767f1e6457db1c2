"""What tables and pictures show of mappings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from topoplace.errors import number_of
from topoplace.kinds import kind_named
from topoplace.machine import format_node_set
from topoplace.mapping.evaluate import hop_bytes, worth_of
from topoplace.mapping.machines import offer_of
from topoplace.mapping.problem import MappingProblem
from topoplace.report import mapping_plane as pencils
from topoplace.report.domains import Boxes, domain_boxes
from topoplace.report.figure import MOST_HEIGHT, WIDE, entry, flat, greys_of
from topoplace.report.text import Table
from topoplace.report.tiles import (
    FREE,
    NUM_FAR,
    RGB,
    UNUSABLE,
    Cells,
    Tiles,
    far_colour,
    leaving_colour,
    machine_tiles,
)
from topoplace.report.view import Listing, Picture, View, exact
from topoplace.result import Proof
from topoplace.result.base import Start
from topoplace.result.mapping import CutLoad, LayoutModel, LinkLoad, TaskLoad
from topoplace.snapshot.schema import GridApplication, ParallelismApplication
from topoplace.types import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist

_MOST_HOPS = 12


class MappingView(View):
    """Tasks on routers; the colour of a router says how far its messages go."""

    cell: ClassVar[str] = "router"
    height: ClassVar[float] = MOST_HEIGHT
    greys: ClassVar[Sequence[int]] = (FREE, UNUSABLE)
    num_inked: ClassVar[int] = NUM_FAR

    @cached_property
    def state(self) -> Any:
        """The problem that methods solve."""
        if self._state is not None:
            return self._state
        return kind_named(self.result.problem).get("prepare")(self.result.instance)

    @property
    def problem(self) -> MappingProblem:
        """The places of tasks, and their messages."""
        problem: MappingProblem = self.state
        return problem

    @property
    def started(self) -> set[str]:
        """Empty, as there is no queue."""
        return set()

    def _starts(self) -> list[Start]:
        return []

    def frame(self) -> dict[str, list[Any]]:
        """Return the result as named columns, with a row for every task."""
        problem, result = self.problem, self.result
        nodes = np.array(result.solution.nodes if result.solution else [], dtype=np.int64)
        routers = problem.routers_of(nodes)
        columns = self.names(len(nodes))
        if problem.machine.levels is not None:
            return columns | {"host": [problem.machine.levels.node_names[n] for n in nodes]}
        columns |= {"node": nodes.tolist(), "router": routers.tolist()}
        called = offer_of(result.instance.machine).names(result.instance.machine)
        if called:
            columns["host"] = [called[node] for node in nodes.tolist()]
        if problem.machine.torus is not None:
            for dim, at in enumerate(problem.machine.torus.coordinates[routers].T.tolist()):
                columns[f"x{dim}"] = at
        return columns

    def names(self, num: int) -> dict[str, list[Any]]:
        """Return the columns of a data frame that identify its rows."""
        instance = self.result.instance
        called = getattr(instance.application, "names", None)
        named = {"name": called[:num]} if called else {}
        if instance.cap is None:
            return {"task": list(range(num)), **named}
        return {"object": list(range(num)), **named, "load": self.problem.loads[:num].tolist()}

    @property
    def listings(self) -> list[Listing]:
        """The domains with the share of their bytes that leaves them, and the tasks on routers."""
        cells, machine = self.cells, self.problem.machine
        if not cells.tasks:
            return []
        what = "task" if self.result.instance.cap is None else "object"
        counts = np.bincount(self.routers)
        rows = [
            [name, f"{counts[at]:,}", f"{self.mean_hops[at]:.3g}", cells.tasks[at]]
            for at, name in self._named(sorted(cells.tasks))
        ]
        hops = "mean hops" if machine.levels is None else "mean cost"
        where = "router" if machine.levels is None else "host"
        header, called = [where, f"{what}s", hops, "which"], self._called()
        if called:
            header.append("names")
            for row, at in zip(rows, sorted(cells.tasks), strict=True):
                row.append(", ".join(called.get(at, ())))
        tasks = Table(header, rows, (1, 2))
        return [*self._domains(f"{what}s"), Listing(f"{what}s by {where}".capitalize(), tasks)]

    def _called(self) -> dict[int, list[str]]:
        """Return by router what its tasks are called, if they have names."""
        found: dict[int, list[str]] = {}
        names = getattr(self.result.instance.application, "names", None) or ()
        for name, router in zip(names, self.routers.tolist(), strict=False):
            found.setdefault(router, []).append(name)
        return found

    def _domains(self, what: str) -> list[Listing]:
        """Return the domains that have tasks, if there are levels above the hosts."""
        levels = self.problem.machine.levels
        if levels is None or not self.shares:
            return []
        rows = []
        of, names = levels.hierarchy.domain_of, levels.hierarchy.domain_names
        for level, own in enumerate(self.shares):
            name = levels.hierarchy.levels[level]
            hosts, tasks = np.bincount(of[level]), np.bincount(of[level][self.routers])
            rows += [
                [name, names[level][k], f"{hosts[k]:,}", f"{tasks[k]:,}", f"{100 * share:.3g} %"]
                for k, share in own.items()
            ]
        header = ("level", "domain", "hosts", what, "of its bytes, those that leave")
        return [Listing("Domains", Table(header, rows, (2, 3, 4)), (0,))]

    def _named(self, routers: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield routers with their names, coordinates or numbers."""
        machine = self.problem.machine
        for at in routers:
            if machine.levels is not None:
                yield at, machine.levels.node_names[at]
            elif machine.torus is not None:
                yield at, ",".join(map(str, machine.torus.coordinates[at].tolist()))
            else:
                yield at, str(at)

    # ---- What the screen shows

    def about(self) -> list[str]:
        """Return a line on the application and the machine."""
        instance = self.result.instance
        application, machine = instance.application, instance.machine.name
        if instance.cap is not None:
            return [f"{self._objects()} on {machine}, {self._caps()}"]
        if isinstance(application, GridApplication):
            what = f"grid {'x'.join(map(str, application.shape))}"
        elif isinstance(application, ParallelismApplication):
            axes = " x ".join(f"{axis.name} {axis.size}" for axis in application.axes)
            what = f"training job {axes}"
        else:
            what = f"graph of {number_of(application.num_tasks, 'task')}"
        return [f"{what}, {number_of(instance.tasks_per_node, 'task')} per node on {machine}"]

    def _objects(self) -> str:
        """Return what objects there are."""
        problem, fixed = self.problem, len(self.result.instance.fixed)
        arrays = ", ".join(f"{a.name} {'x'.join(map(str, a.shape))}" for a in problem.arrays)
        what = number_of(problem.num_tasks, "object") + (f", {fixed:,} fixed" if fixed else "")
        return what + (f" ({arrays})" if arrays else "") + f" of load {problem.total_load:,}"

    def _caps(self) -> str:
        """Return under which cap they are, and how many messages go over trees."""
        instance, trees = self.result.instance, len(self.problem.listed_trees)
        shared = ", pooled by router" if instance.pooled else ""
        joined = f"; multicasts and reductions: {trees:,}" if trees else ""
        return f"at most {instance.cap:,} per node{shared}{joined}"

    def found(self) -> list[str]:
        """Return the figures of the mapping, and the bounds besides those of the levels."""
        solution, result = self.result.solution, self.result
        if solution is None:
            return ["no mapping found", *result.notes]
        figures = solution.figures
        shown = [f"{hops}: {count:,}" for hops, count in enumerate(figures.histogram)]
        shown[_MOST_HOPS:] = ["..."] if len(shown) > _MOST_HOPS else []
        unit = "hops" if figures.level_bytes is None else "cost"
        lines = [
            f"{unit} {figures.hops:,}, largest {figures.max_hops}; "
            f"{number_of(figures.off_router_messages, 'message')} and "
            f"{number_of(figures.off_router_bytes, 'byte')} "
            "leave their router",
            f"messages by hops: {', '.join(shown)}",
        ]
        if figures.level_bytes is not None:
            own = ", ".join(f"{size:,}" for size in figures.level_bytes)
            lines[1] = f"bytes by the level where they turn, from one node up: {own}"
        if figures.max_link_load is not None:
            heaviest = float(exact(figures.max_link_load))
            least = "" if result.link_load is None else f", {_least(result.link_load)}"
            unit = "byte" if heaviest == 1 else "bytes"
            lines.append(f"largest link load {heaviest:,.6g} {unit} per unit of bandwidth{least}")
        return [*lines, *self._further(), *self._in_order(), *result.notes]

    def _in_order(self) -> list[str]:
        """Return what tasks in their default order cost, to compare with."""
        instance = self.result.instance
        if instance.cap is not None or instance.moves or self.result.method == "default":
            return []
        worth = worth_of(self.problem, self.problem.in_order)
        spread = f"spread {worth[0]}, " if self.problem.spread else ""
        return [f"default order: {spread}{worth[-1]:,} hop-bytes"]

    def _further(self) -> list[str]:
        """Return how many nodes have objects, the layout, and the optimum among pencils."""
        solution, lines = self.result.solution, []
        if solution.figures.spans is not None:
            lines.append(f"most domains of a group: {self._spans(solution.figures.spans)}")
        moves = self.result.instance.moves
        if moves is not None:
            before = hop_bytes(self.problem, np.asarray(moves.nodes, dtype=np.int64))
            moved = number_of(solution.figures.moved, "task")
            lines.append(f"{moved} moved, at most {moves.most:,}; before {before:,} hop-bytes")
        if solution.figures.used_nodes is not None:
            lines.append(f"objects on {number_of(solution.figures.used_nodes, 'node')}")
        if solution.layout is not None:
            lines.append(layout_text(solution.layout))
        optimum = solution.optimum
        if optimum is not None:
            reached = optimum.bound == optimum.objective
            best = "the optimum" if reached else f"at least {optimum.bound:,}"
            how = "" if optimum.proof is Proof.NONE else f" (by {optimum.proof})"
            lines.append(
                f"among pencil placements: {best}{how}; {number_of(optimum.layouts, 'layout')}, "
                f"{number_of(optimum.windows, 'window')}"
            )
        return lines

    def _spans(self, spans: Sequence[int]) -> str:
        """Return for every kind of groups the most domains that one spans."""
        levels = self.problem.machine.levels.hierarchy.levels[::-1]
        return ", ".join(
            f"{kind.name} {span} ({levels[kind.level]})"
            for kind, span in zip(self.problem.spread, spans, strict=True)
        )

    def title(self) -> list[str]:
        """Return the value of the first level, and the layout if there is one."""
        layout = getattr(self.result.solution, "layout", None)
        text = "" if layout is None else f"; {layout_text(layout)}"
        return [f"{self.result.levels[0].name} {self.result.objective:,}{text}"]

    # ---- What pictures show

    @cached_property
    def routers(self) -> IntArray:
        """The router of every task, of a result with a solution."""
        return self.problem.routers_of(np.asarray(self.result.solution.nodes, dtype=np.int64))

    @cached_property
    def mean_hops(self) -> FloatArray:
        """By router the mean of the hops of the bytes that its tasks send and get."""
        machine, graph = self.problem.machine, self.problem.graph
        ends = self.routers[graph.sources], self.routers[graph.targets]
        hops = machine.hops(*ends).astype(float)
        total, weighted = np.zeros(machine.num_routers), np.zeros(machine.num_routers)
        for end in ends:
            total += np.bincount(end, graph.bytes, machine.num_routers)
            weighted += np.bincount(end, graph.bytes * hops, machine.num_routers)
        mean: FloatArray = weighted / np.maximum(total, 1)
        return mean

    @cached_property
    def cells(self) -> Cells:
        """How far the messages of every router go, and the tasks on it.

        The code of a router with tasks is the mean of the hops of the bytes that it sends and
        receives, on a square-root scale from 0 to `NUM_FAR`, the machine's diameter, so that
        pictures of one machine compare; others are `FREE` or `UNUSABLE`.
        """
        problem, result = self.problem, self.result
        machine = problem.machine
        codes = np.where(problem.capacity > 0, FREE, UNUSABLE)
        nobody, plain = np.full(codes.shape, -1), np.zeros(codes.shape, dtype=bool)
        if result.solution is None:
            return Cells(codes, nobody, plain, inked=far_colour)
        routers = self.routers
        order = np.argsort(routers, kind="stable")
        used, first = np.unique(routers[order], return_index=True)
        share = np.sqrt(self.mean_hops[used] / max(1, machine.diameter))
        codes[used] = np.minimum(NUM_FAR * share, NUM_FAR - 1).astype(np.int64)
        names = map(format_node_set, np.split(order, first[1:]))
        tasks = dict(zip(used.tolist(), names, strict=True))
        return Cells(codes, nobody, plain, tasks=tasks, inked=far_colour)

    @cached_property
    def shares(self) -> list[dict[int, float]]:
        """By level of domains, top first, which share of a domain's bytes leaves it."""
        levels, graph = self.problem.machine.levels, self.problem.graph
        if levels is None or self.result.solution is None:
            return []
        found = []
        for domain_of in levels.domain_of[-2:0:-1]:
            domain = domain_of[self.routers]
            first, last = domain[graph.sources], domain[graph.targets]
            crossing = first != last  # other bytes count once in their domain
            total = np.bincount(
                np.append(first, last[crossing]), np.append(graph.bytes, graph.bytes[crossing])
            )
            both, sent = np.concatenate([first[crossing], last[crossing]]), graph.bytes[crossing]
            leaves = np.bincount(both, np.tile(sent, 2), len(total))
            used = np.flatnonzero(total)
            found.append(
                dict(zip(used.tolist(), (leaves[used] / total[used]).tolist(), strict=True))
            )
        return found

    @property
    def tiles(self) -> Tiles | Boxes:
        """Slices of a torus, boxes of domains, or all routers in rows."""
        machine = self.problem.machine
        if machine.levels is not None:
            return domain_boxes(machine.levels.hierarchy, self.shares)
        return machine_tiles(machine.torus.shape if machine.torus else (machine.num_routers,))

    def picture(self) -> Picture:
        """Return a plane of pencils if there is a layout, else all routers with their tasks."""
        problem, cells, solution = self.problem, self.cells, self.result.solution
        cell = self.cell if problem.machine.levels is None else "host"
        greys = greys_of(cells, cell)
        if solution is None:
            return flat(self, greys)
        nodes = np.asarray(solution.nodes, dtype=np.int64)
        layout = getattr(solution, "layout", None)
        if layout is None:
            picture = flat(self, _hops(cells, problem) + _leaving(self.shares) + greys)
        else:
            plane = pencils.plane_of(problem, nodes, layout)
            rows, columns = plane.shape
            used = f"holds tasks: {number_of(int(np.count_nonzero(cells.codes >= 0)), 'router')}"
            picture = Picture(
                partial(
                    pencils.draw_plane, plane=plane, problem=problem, nodes=nodes, layout=layout
                ),
                min(MOST_HEIGHT, WIDE * rows / columns, 0.5 * rows),
                [entry(used, pencils.USED_COLOUR), *greys],
            )
        if problem.machine.torus is None:
            return picture
        return replace(picture, loads=pencils.heaviest_loads(self.state, nodes))

    @classmethod
    def inked(cls, code: int) -> RGB:
        """Return the colour of a router, the darker the farther its messages go."""
        return far_colour(code)


def layout_text(layout: LayoutModel) -> str:
    """Return a layout and its window in one line."""
    logical = "x".join(map(str, layout.logical))
    partitions = "x".join(map(str, layout.partitions))
    text = f"layout {logical} routers, {partitions} tasks each"
    if layout.whole is not None:
        text += f" times dimension {layout.whole + 1}"
    if any(layout.folds):
        text += f", folds {','.join(map(str, layout.folds))}"
    if layout.path is not None:
        block = "x".join(map(str, layout.path.block))
        text += f", dimension {layout.path.dim + 1} on paths in blocks of {block}"
    origin = ",".join(map(str, layout.origin))
    return f"{text}; at {origin}, pencils along dimension {layout.pencil + 1}, depth {layout.depth}"


def _least(load: LinkLoad) -> str:
    """Return the lower bound on the largest link load of any mapping, and why it holds."""
    proof = load.certificate
    why = "hop-bytes over all links"
    if isinstance(proof, TaskLoad):
        why = f"what task {proof.task} sends or gets"
    elif isinstance(proof, CutLoad):
        layers = f"layer {proof.first} of dimension {proof.dimension + 1}"
        if proof.layers > 1:
            layers = f"{proof.layers} layers, from {layers} on"
        why = f"what crosses a cut: {layers}"
    return f"at least {float(exact(load.bound)):,.6g} in any mapping ({why})"


def _hops(cells: Cells, problem: MappingProblem) -> list[Artist]:
    """Return the meaning of the colours of a mapping's routers."""
    diameter = max(1, problem.machine.diameter)
    what = "mean hops" if problem.machine.levels is None else "mean cost of a byte"
    entries = []
    for code in np.unique(cells.codes[cells.codes >= 0]).tolist():
        near, far = (diameter * (k / NUM_FAR) ** 2 for k in (code, code + 1))
        entries.append(entry(f"{what} {near:.2g} to {far:.2g}", far_colour(code)))
    return entries


def _leaving(shares: Sequence[Mapping[int, float]]) -> list[Artist]:
    """Return the meaning of the colours of boxes, if there are any."""
    known = [share for own in shares for share in own.values()]
    if not known:
        return []
    return [
        entry(f"box: {100 * share:.2g} % of its bytes leave", leaving_colour(share))
        for share in dict.fromkeys((min(known), max(known)))
    ]
