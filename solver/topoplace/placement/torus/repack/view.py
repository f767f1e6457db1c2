"""What tables and pictures show of a plan: two placements, before and after.

Jobs that move or start have the same colour in both.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

from topoplace.errors import number_of
from topoplace.machine import Prism, parse_node_set
from topoplace.report.figure import picture_of, title
from topoplace.report.text import Table, count_text, plain_table
from topoplace.report.view import AnyResult, Listing, Picture, View, view_of
from topoplace.result import Placement, PlacementLimits, PlacementResult, Solution
from topoplace.result.base import Start
from topoplace.result.placement import Action, RepackResult, RepackSolution
from topoplace.result.several import Frontier, Point
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.schema import PrismModel, Request, RunningJob, Snapshot
from topoplace.snapshot.state import prepare

_MOVES = 1  # the level of plans that make room


class RepackView(View):
    """A plan, as the placement after it is carried out."""

    @property
    def rule(self) -> str:
        """The interference rule."""
        return f"{self.result.limits.interference} interference, "

    @cached_property
    def after(self) -> View:
        """The placement after the plan."""
        return view_of(before_and_after(self.result)[1])

    def _starts(self) -> list[Start]:
        return self.after.starts

    @property
    def rows(self) -> Table:
        """The table of what moves or starts."""
        return self.after.rows

    @property
    def listings(self) -> list[Listing]:
        """What moves or starts."""
        return [Listing("What moves or starts", self.rows)]

    def frame(self) -> dict[str, list[Any]]:
        """Return what moves or starts as named columns."""
        return self.after.frame()

    def found(self) -> list[str]:
        """Return the steps of the plan."""
        return plan_lines(self.result)

    def title(self) -> list[str]:
        """Return how many start and move."""
        return plan_lines(self.result)[:1]

    def most(self) -> int:
        """Return what moves may cost at most, of a frontier."""
        most: int = self.result.instance.most
        return most

    def curve(self) -> list[str]:
        """Return the most room by what moves may cost, and the steps of the last plan."""
        frontier: Any = self.result
        most = self.most()
        known = [point.values[_MOVES] for point in frontier.points]
        fewest = [box.best[0] or 0 for box in frontier.open]
        costs = sorted({cost for cost in (0, *known, *fewest) if cost <= most})
        rows = []
        for cost, following in itertools.pairwise([*costs, most + 1]):
            point, bound = best_for(frontier, cost)
            plan: Any = point and point.solution
            moves = [move.request for move in plan.moves] if plan else []
            room, proven = count_text(point and point.values[-1]), count_text(bound)
            last = f" to {following - 1:,}" if following > cost + 1 else ""
            rows.append([f"{cost:,}{last}", room, proven, " ".join(moves) or "-"])
        header = ["moves", "room (max)", "bound", "who moves"]
        lines = [plain_table(header, rows, right=range(3))]
        if frontier.points:
            lines += step_lines(frontier.instance.snapshot, frontier.points[-1].solution)
        return lines

    def picture(self) -> Picture:
        """Return the picture of the placement after the plan."""
        return picture_of(self.after)

    def figures(self) -> list[tuple[AnyResult, list[str] | None]]:
        """Return the placements before and after."""
        before, after = before_and_after(self.result)
        heads = [*title(self.result)[:1], "before"], ["after", *self.title()]
        return [(before, heads[0]), (after, heads[1])]


def best_for(frontier: Frontier, cost: int) -> tuple[Point | None, int | None]:
    """Return the plan with the largest room for moves of a cost, and the bound; None if unknown.

    Of a frontier of moves and room.
    """
    within = [point for point in frontier.points if point.values[_MOVES] <= cost]
    best = within[-1] if within else None
    bounds = [0 if best is None else best.values[-1]]
    for box in frontier.open:
        (fewest, most) = box.best
        if fewest is None or fewest <= cost:
            if most is None:
                return best, None
            bounds.append(most)
    return best, max(bounds)


def before_and_after(result: RepackResult) -> tuple[PlacementResult, PlacementResult]:
    """Return the placements now and after the plan; jobs that stay are running in both."""
    snapshot, solution = resolve_machine(result.instance.snapshot), result.solution
    moves, starts = (solution.moves, solution.placements) if solution else ([], [])
    moving = {placement.request for placement in moves}
    old = [job for job in snapshot.running if job.id in moving]
    wanted = {*result.instance.start}
    queue = [_waiting(snapshot, job) for job in old]
    queue += [request for request in snapshot.queue if request.id in wanted]
    rest = [job for job in snapshot.running if job.id not in moving]
    view = snapshot.model_copy(update={"running": rest, "queue": queue})
    now = [Placement(request=job.id, prism=job.prism, nodes=job.nodes) for job in old]
    return _placed(result, view, now), _placed(result, view, [*moves, *starts])


def _waiting(snapshot: Snapshot, job: RunningJob) -> Request:
    """Return a job that moves as a request: of the class of its nodes."""
    state = prepare(snapshot.model_copy(update={"queue": []}))
    nodes = parse_node_set(job.nodes, state.torus.num_nodes)
    name = state.classes[int(state.node_class[nodes[0]])]
    return Request(id=job.id, nodes=len(nodes), node_class=name, communication=job.communication)


def _placed(result: RepackResult, view: Snapshot, placements: list[Placement]) -> PlacementResult:
    limits = PlacementLimits(interference=result.limits.interference)
    fields = {name: getattr(result, name) for name in type(result).model_fields}
    changed = {
        "problem": "placement",
        "limits": limits,
        "levels": [],
        "solution": Solution(placements=placements, num_shared_links=0, conforming=True),
        "instance": view,
    }
    return PlacementResult.model_construct(**(fields | changed))


def plan_lines(result: RepackResult) -> list[str]:
    """Return the plan, step by step."""
    solution = result.solution
    if solution is None:
        return ["no plan found"]
    start, num = result.instance.start, len(solution.placements)
    if num < len(start):
        proven = result.bound == num
        why = "cannot start, however the others move" if proven else "not started"
        left = sorted({*start} - {placement.request for placement in solution.placements})
        found = f"{len(left)} of {number_of(len(start), 'request')} {why}: {', '.join(left)}"
        if num == 0:
            return [found]
    else:
        found = f"{num} of {number_of(num, 'request')} can start"
    jobs = result.instance.snapshot.running
    lines = [f"{found}; {len(solution.moves)} of {number_of(len(jobs), 'running job')} to move"]
    return [*lines, *step_lines(result.instance.snapshot, solution)]


def step_lines(snapshot: Snapshot, solution: RepackSolution) -> list[str]:
    """Return the steps of a plan, and the jobs that are suspended in them."""
    lines: list[str] = []
    jobs = {job.id: job for job in snapshot.running}
    to = {p.request: p for p in (*solution.moves, *solution.placements)}
    for number, step in enumerate(solution.steps, start=1):
        place = _text(to[step.job].prism)
        if step.action is Action.MOVE:
            told = f"move {step.job} from {_text(jobs[step.job].prism)} to {place}"
        elif step.action is Action.SUSPEND:
            told = f"suspend {step.job} on {_text(jobs[step.job].prism)}"
        else:
            told = f"{step.action} {step.job} on {place}"
        lines.append(f"{number:3d}. {told}")
    if solution.suspended:
        fewer = "no fewer would do" if solution.fewest_suspended else "fewer might do"
        lines.append(f"{len(solution.suspended)} suspended, for want of free space: {fewer}")
    return lines


def _text(model: PrismModel | None) -> str:
    return "-" if model is None else Prism(tuple(model.origin), tuple(model.extents)).text
