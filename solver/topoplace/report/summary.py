"""What a person wants to read after a solve: a few lines of plain text.

What is proven comes first, level by level, then the answer, then why the rest waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topoplace.errors import ExitCode, number_of
from topoplace.report.answer import (
    WIDTH,
    answer_table,
    decimal_text,
    exact,
    started_names,
    unit_of,
    waiting_texts,
)
from topoplace.report.repack import plan_lines
from topoplace.report.text import gap_text, plain_table
from topoplace.result import Level, PlacementResult, Proof, Result, Status, level_label
from topoplace.result.mapping import CutLoad, LayoutModel, LinkLoad, MappingResult, TaskLoad
from topoplace.result.objects import ObjectsResult, ObjectsSolution
from topoplace.result.repack import RepackResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.held import held_text, holds_of, left_out_text
from topoplace.snapshot.schema import GridApplication, ParallelismApplication

AnyResult = Result[Any, Any, Any]
AnyLevel = Level[Any, Any]

LEVEL_HEADER = ["level", "objective", "bound", "gap", "status", "proof"]

_MOST_EXPLAINED = 8
_MOST_ALIKE = 4
_MOST_NAMED = 40
_MOST_HOPS = 12
_NEARLY = 0.9
"""Share of a time limit after which it may be what ended a search."""


def summary(
    result: AnyResult, width: int = WIDTH, *, table: bool = True, reasons: bool = True
) -> str:
    """Return a result as text: what is proven, and what was found.

    Parameters
    ----------
    width
        Characters of a line of the table of what starts.
    table, reasons
        Whether to have that table, and why requests wait.
    """
    levels = plain_table(LEVEL_HEADER, level_rows(result), right=(1, 2, 3))
    if isinstance(result, MappingResult):
        lines = [headline(result), _mapped(result), levels, *_mapping(result)]
        return "\n".join([*lines, *result.notes])
    if isinstance(result, ObjectsResult):
        lines = [headline(result), _objects(result), levels, *_mapping(result)]
        return "\n".join([*lines, *result.notes])
    if isinstance(result, RepackResult):
        return "\n".join([headline(result), levels, *plan_lines(result)])
    lines = [headline(result), levels]
    left_out = left_out_text(result.instance)
    if left_out is not None:
        lines.append(left_out)
    if result.solution is None:
        return "\n".join([*lines, _unanswered(result)])
    lines.append(_started(result))
    if isinstance(result, PlacementResult) and not result.solution.conforming:
        shared = f"{number_of(result.solution.num_shared_links, 'link')} shared against the rule"
        lines.append(f"does not conform: {shared}, or jobs without a prism")
    lines += answer_table(result, width) if table else []
    lines += _waiting(result) if reasons else []
    return "\n".join(lines)


def headline(result: AnyResult) -> str:
    """Return one line: what is proven of every level, why it stopped, and who solved it."""
    found = [level for level in result.levels if level.objective is not None]
    as_set = [level for level in found if _required(level) is not None]
    if found:
        found = [level for level in found if level not in as_set] or found
    if not found:
        text = _nothing(result)
    elif all(level.bound is None for level in found):
        text = "nothing proven"
    elif all(
        level.status is Status.OPTIMAL and level.proof is Proof.CERTIFICATE for level in found
    ):
        names = [level_label(result.instance, level.name) for level in found]
        text = f"{listing(names)} optimal"
    elif all(level.status is Status.OPTIMAL and level.proof is Proof.SEARCH for level in found):
        names = [level_label(result.instance, level.name) for level in found]
        text = f"{listing(names)} optimal, by search"
    else:
        text = "; ".join(_proven(result, level) for level in found)
    text += "".join(f", {_required_text(result, level)}" for level in as_set)
    rule = ""
    if isinstance(result, PlacementResult | RepackResult):
        rule = f"{result.limits.interference} interference, "
    solver = f"{result.method}, {rule}{result.seconds:.2f} s"
    return (
        f"{result.instance.name}: {text}{_stopped(result)}{held_text(result.instance)} ({solver})"
    )


def listing(names: Sequence[str]) -> str:
    """Return names as a sentence lists them."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def exit_code_of(result: AnyResult) -> ExitCode:
    """Return the exit code that tells a script how a solve ended."""
    if Status.INFEASIBLE in (result.status, *(level.status for level in result.levels)):
        return ExitCode.INFEASIBLE
    if result.solution is None or result.status is Status.UNKNOWN:
        return ExitCode.NO_SOLUTION
    return ExitCode.DONE


def layout_text(layout: LayoutModel) -> str:
    """Return a layout and its window in one line."""
    logical = "x".join(map(str, layout.logical))
    partitions = "x".join(map(str, layout.partitions))
    text = f"layout {logical} routers, {partitions} tasks each"
    if layout.whole is not None:
        text += f" times dimension {layout.whole + 1}"
    if any(layout.folds):
        text += f", folds {','.join(map(str, layout.folds))}"
    origin = ",".join(map(str, layout.origin))
    return f"{text}; at {origin}, pencils along dimension {layout.pencil + 1}, depth {layout.depth}"


def level_rows(result: AnyResult) -> list[list[str]]:
    """Return what is known of every level as text, in the columns of `LEVEL_HEADER`."""
    return [
        [
            f"{level_label(result.instance, level.name)} ({level.sense})",
            _number(level.objective),
            _number(level.bound),
            gap_text(level.gap),
            level.status,
            level.proof,
        ]
        for level in result.levels
    ]


def _number(value: Any) -> str:
    return "-" if value is None else decimal_text(exact(value))


# ---- What is proven -----------------------------------------------------------------------------


def _proven(result: AnyResult, level: AnyLevel) -> str:
    name = level_label(result.instance, level.name)
    if level.bound is None:
        return f"{name} without a bound"
    by_search = ", by search" if level.proof is Proof.SEARCH else ""
    if level.status is Status.OPTIMAL:
        return f"{name} optimal{by_search}"
    return f"{name} within {gap_text(level.gap)}{by_search}"


def _required(level: AnyLevel) -> int | None:
    """Return what was required of a level, if anything."""
    required: int | None = getattr(level, "required", None)
    return required


def _required_text(result: AnyResult, level: AnyLevel) -> str:
    most = "at least" if level.sense == "max" else "at most"
    return f"{level_label(result.instance, level.name)} {most} {_required(level):,} as set"


def _nothing(result: AnyResult) -> str:
    for level in result.levels:
        if level.status is Status.INFEASIBLE:
            return f"infeasible: {_required_text(result, level)}, the bound is {level.bound:,}"
    first = result.levels[0]
    if first.bound is None:
        return "nothing found"
    most = "at most" if first.sense == "max" else "at least"
    return (
        f"nothing found, {most} {_number(first.bound)} {level_label(result.instance, first.name)}"
    )


def _stopped(result: AnyResult) -> str:
    """Return why the search ended before all was proven, and how to go on where it can."""
    limit, seconds = result.limits.time_limit, result.seconds
    if result.limits.hit:
        why = ", before all was proven"
        if limit is not None:
            early = seconds < _NEARLY * limit  # by a signal
            why = f"{', before' if early else ' because of'} the time limit of {limit:g} s"
        return f"; stopped at {seconds:.3g} s{why}"
    if result.method != "exact" or not _has_open_level(result):
        return ""
    what = "all was proven" if limit is None else f"the time limit of {limit:g} s"
    how = ", --thorough goes on" if result.limits.thorough is False else ""
    return f"; ended before {what}{how}"


def _has_open_level(result: AnyResult) -> bool:
    """Tell whether a level is not proven optimal, and none of its values was asked for."""
    return any(
        level.status is Status.FEASIBLE and _required(level) is None for level in result.levels
    )


# ---- What was found -----------------------------------------------------------------------------


def _unanswered(result: AnyResult) -> str:
    """Return that there is no answer, and what levels are worth without what cannot be met."""
    witness = getattr(result, "witness", None)
    if witness is None:
        waiting = number_of(len(result.instance.queue), "request")
        return f"nothing found that starts any of the {waiting}"
    worth = zip(result.levels, witness.values, strict=True)
    every = (f"{level_label(result.instance, level.name)} {value:,}" for level, value in worth)
    return f"best found without what was set: {', '.join(every)}"


def _started(result: AnyResult) -> str:
    """Return how many requests start, and on a tree what that costs."""
    names, queue = started_names(result), result.instance.queue
    nodes = sum(request.nodes for request in queue if request.id in names)
    text = f"started {len(names)} of {number_of(len(queue), 'request')}, "
    text += number_of(nodes, unit_of(result))
    if isinstance(result, AllocationResult) and result.solution is not None:
        cost = exact(result.solution.cost)
        same = "" if cost.denominator == 1 else f" = {cost}"
        text += f"; total cost {decimal_text(cost)}{same}"
    return text


def _waiting(result: AnyResult) -> list[str]:
    """Return why requests wait, and the names of those of which nothing is known.

    Those that wait for the same reason have one line.
    """
    texts = waiting_texts(result)
    held = holds_of(result.instance)
    alike: dict[tuple[bool, str], list[str]] = {}
    for name, text in texts.items():
        alike.setdefault((name in held, text), []).append(name)
    lines, more = [], len(texts)
    for (is_held, text), names in list(alike.items())[:_MOST_EXPLAINED]:
        who = ", ".join(names[:_MOST_ALIKE])
        if len(names) > _MOST_ALIKE:
            who += f" and {len(names) - _MOST_ALIKE:,} more"
        verb = "" if is_held else " waits:" if len(names) == 1 else " wait:"
        lines.append(f"  {who}{verb} {text}")
        more -= len(names)
    if more:
        lines.append(f"  ... and {more:,} more wait (topoplace show --html says why)")
    known = started_names(result) | texts.keys()
    names = [f"{r.id} ({r.nodes:,})" for r in result.instance.queue if r.id not in known]
    if names:
        more = len(names) - _MOST_NAMED
        names[_MOST_NAMED:] = [f"and {more:,} more"] if more > 0 else []
        lines.insert(0, f"waiting: {', '.join(names)}")
    return lines


def _mapped(result: MappingResult) -> str:
    """Return what was mapped to what."""
    instance = result.instance
    application = instance.application
    if isinstance(application, GridApplication):
        what = f"grid {'x'.join(map(str, application.shape))}"
    elif isinstance(application, ParallelismApplication):
        axes = " x ".join(f"{axis.name} {axis.size}" for axis in application.axes)
        what = f"training job {axes}"
    else:
        what = f"graph of {number_of(application.num_tasks, 'task')}"
    return (
        f"{what}, {number_of(instance.tasks_per_node, 'task')} per node on {instance.machine.name}"
    )


def _objects(result: ObjectsResult) -> str:
    """Return what objects were mapped to what, under which cap."""
    instance = result.instance
    total, shared = sum(instance.loads), ", pooled by router" if instance.pooled else ""
    fixed = f", {len(instance.fixed):,} fixed" if instance.fixed else ""
    trees = f"; multicasts and reductions: {len(instance.trees):,}" if instance.trees else ""
    arrays = ", ".join(f"{a.name} {'x'.join(map(str, a.shape))}" for a in instance.arrays)
    what = f"{number_of(len(instance.loads), 'object')}{fixed}" + (f" ({arrays})" if arrays else "")
    return (
        f"{what} of load {total:,} on {instance.machine.name}, "
        f"at most {instance.cap:,} per node{shared}{trees}"
    )


def _least(load: LinkLoad) -> str:
    """Return what no mapping's largest link load is below, and why."""
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


def _mapping(result: MappingResult | ObjectsResult) -> list[str]:
    solution = result.solution
    if solution is None:
        return ["no mapping found"]
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
        lines.append(f"largest link load {heaviest:,.6g} bytes per unit of bandwidth{least}")
    if isinstance(solution, ObjectsSolution):
        return [*lines, f"objects on {number_of(solution.figures.used_nodes, 'node')}"]
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
