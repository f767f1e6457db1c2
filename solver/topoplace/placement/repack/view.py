"""What tables and pictures show of a plan: two placements, before and after.

Jobs that move or start have the same colour in both.
"""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cached_property
from typing import Any

from topoplace.errors import number_of
from topoplace.kinds import Kind, kind_named, kind_of_machine
from topoplace.machine import Prism
from topoplace.report.figure import picture_of, title
from topoplace.report.text import Table, count_text, plain_table
from topoplace.report.view import AnyResult, Listing, Picture, View, view_of
from topoplace.result import PlacementLimits
from topoplace.result.base import Start
from topoplace.result.placement import Action, RepackResult, RepackSolution
from topoplace.result.several import Frontier, Point
from topoplace.snapshot.held import PREEMPTION, left_out_text
from topoplace.snapshot.machines import prepare_any, resolve_machine
from topoplace.snapshot.running import job_name, restricted
from topoplace.snapshot.schema import (
    SPARE_PREFIX,
    PrismModel,
    RepackInstance,
    Room,
    RunningJob,
    Snapshot,
)

_MOVES = 1  # the level of plans that make room


class RepackView(View):
    """A plan, as the placement after it is carried out."""

    @property
    def rule(self) -> str:
        """The interference rule, of machines that have one."""
        snapshot = resolve_machine(self.result.instance.snapshot)
        kind = kind_of_machine(snapshot.written.kind)
        has_rule = kind is not None and kind.has_rule
        return f"{self.result.limits.interference} interference, " if has_rule else ""

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
        return [*_said(self.result.instance), *plan_lines(self.result)]

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
            asked: Any = frontier.instance
            last_plan = frontier.points[-1].solution
            level = asked.level or ("cube" if asked.room is Room.DOMAINS else None)
            lines += step_lines(asked.snapshot, last_plan, level)
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


def before_and_after(result: RepackResult) -> tuple[AnyResult, AnyResult]:
    """Return the placements now and after the plan; jobs that stay are running in both."""
    snapshot, solution = resolve_machine(result.instance.snapshot), result.solution
    kind = kind_named(prepare_any(snapshot).kind)
    moves, starts = (solution.moves, solution.placements) if solution else ([], [])
    ended = {*solution.ended} if solution else set()
    now, asked = kind.get("shown")(
        result.instance, {p.request for p in moves} | ended | {*result.instance.replace}
    )
    wanted = [request for request in snapshot.queue if request.id in result.instance.start]
    names = {request.id for request in asked}
    rest = [job for job in snapshot.running if job_name(job) not in names]
    view = snapshot.model_copy(update={"running": rest, "queue": [*asked, *wanted]})
    return _placed(kind, result, view, now), _placed(kind, result, view, [*moves, *starts])


def _placed(kind: Kind, result: RepackResult, view: Snapshot, placements: Any) -> AnyResult:
    solution = kind.get("solution")
    given = {"num_shared_links": 0, "conforming": True}
    own = {name: value for name, value in given.items() if name in solution.model_fields}
    fields = {name: getattr(result, name) for name in type(result).model_fields}
    changed = {
        "problem": kind.name,
        "limits": PlacementLimits(interference=result.limits.interference),
        "levels": [],
        "solution": solution(placements=list(placements), **own),
        "instance": view,
    }
    found: AnyResult = kind.get("result").model_construct(**(fields | changed))
    return found


def _said(instance: RepackInstance) -> list[str]:
    """Return the line on what holds requests and is not modelled, apart from who may be ended."""
    snapshot, apart = instance.snapshot, PREEMPTION if instance.ends else ""
    left_out = [one for one in snapshot.left_out if one.option != apart]
    text = left_out_text(snapshot.model_copy(update={"left_out": left_out}))
    return [] if text is None else [text]


def plan_lines(result: RepackResult) -> list[str]:
    """Return the plan, step by step."""
    solution = result.solution
    if solution is None:
        return ["no plan found"]
    start, num = [*result.instance.start, *result.instance.replace], len(solution.placements)
    spares = result.instance.spares
    if num < len(start):
        proven = result.bound == num
        why = "cannot start, however the others move" if proven else "not started"
        if proven and len(result.instance.ends) > len(spares):
            why += " or end"
        elif proven and not result.instance.moving and not result.instance.replace:
            why = "cannot start, as is proven: no running job may move or end"
        if proven and spares:
            why += ", with all spares"
        left = sorted({*start} - {placement.request for placement in solution.placements})
        found = f"{len(left)} of {number_of(len(start), 'request')} {why}: {', '.join(left)}"
        if num == 0:
            return [found, *_stay_lines(result.instance.snapshot)]
    else:
        found = f"{num} of {number_of(num, 'request')} can start"
    jobs = {job_name(job) for job in result.instance.snapshot.running} - {*spares}
    told = f"{len(solution.moves)} of {number_of(len(jobs), 'running job')} to move"
    if len(result.instance.ends) > len(spares):
        told += f", {sum(name not in spares for name in solution.ended)} to end"
    if spares:
        used = sum(name in spares for name in solution.ended)
        told += f", {used} of {number_of(len(spares), 'spare')} used"
    return [f"{found}; {told}", *step_lines(result.instance.snapshot, solution)]


def step_lines(snapshot: Snapshot, solution: RepackSolution, level: str | None = None) -> list[str]:
    """Return the steps of a plan, and the jobs that are suspended in them."""
    lines: list[str] = []
    jobs: dict[str, list[RunningJob]] = {}
    for job in snapshot.running:
        jobs.setdefault(job_name(job), []).append(job)
    to = {p.request: _text(p) for p in (*solution.moves, *solution.placements)}
    queued = {request.id for request in snapshot.queue}
    for number, step in enumerate(solution.steps, start=1):
        old = " ".join(map(_text, jobs.get(step.job, [])))
        if step.action is Action.MOVE:
            told = f"move {step.job} from {old} to {to[step.job]}"
        elif step.action is Action.END and step.job.startswith(SPARE_PREFIX):
            told = f"use {step.job.replace(':', ' ')}"
        elif step.action in (Action.SUSPEND, Action.END):
            told = f"{step.action} {step.job} on {old}"
        else:
            action = "replace" if step.action is Action.START and old else step.action
            told = f"{action} {step.job} on {to[step.job]}"
            if step.action is Action.START and not old and step.job not in queued and level:
                told = f"the {level} of {to[step.job]} is free"
        lines.append(f"{number:3d}. {told}")
    moved = {p.request for p in solution.moves if getattr(p, "prism", None) is None}
    unknown = [name for name in jobs if name in moved and not any(j.asked for j in jobs[name])]
    if unknown and (snapshot.sets or getattr(snapshot.machine, "source", None)):
        lines.append(
            f"not known of {number_of(len(unknown), 'job')} that moved: what it asked for, and "
            "where it may be (`asked` of a running job says so, --fixed keeps it where it is)"
        )
    if solution.suspended:
        fewer = "no fewer would do" if solution.fewest_suspended else "fewer might do"
        lines.append(f"{len(solution.suspended)} suspended: {fewer} for these new places")
    return [*lines, *_stay_lines(snapshot)]


def _stay_lines(snapshot: Snapshot) -> list[str]:
    """Return a line on jobs that may not move as rules of theirs are not modelled, if any."""
    stay = restricted(snapshot)
    counts = Counter(option for own in stay.values() for option in {one.option for one in own})
    each = ", ".join(f"{option} {number}" for option, number in sorted(counts.items()))
    num = number_of(len({*map(job_name, snapshot.running)}), "running job")
    line = (
        f"{len(stay)} of {num} may not move, as what restricts them is not modelled "
        f"({each}; see --ignore)"
    )
    return [line] if stay else []


def _text(placed: Any) -> str:
    """Return where a job is: its prism, or its nodes with the units of each host."""
    prism: PrismModel | None = getattr(placed, "prism", None)
    if prism is not None and not getattr(placed, "cubes", None):
        return Prism(tuple(prism.origin), tuple(prism.extents)).text
    return "-" if placed.nodes is None else str(placed.nodes)
