"""What a person wants to read after a solve: a few lines of plain text.

What is proven comes first, level by level, then the answer, then why the rest waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topoplace.errors import ExitCode, number_of
from topoplace.report.text import gap_text, plain_table
from topoplace.report.view import (
    WIDTH,
    AnyResult,
    View,
    answer_table,
    decimal_text,
    exact,
    view_of,
)
from topoplace.result import Level, Proof, Status, level_label, level_title
from topoplace.snapshot.held import held_text, holds_of, left_out_text

AnyLevel = Level[Any, Any]

LEVEL_HEADER = ["level", "objective", "bound", "gap", "status", "proof"]

_MOST_EXPLAINED = 8
_MOST_ALIKE = 4
_MOST_NAMED = 40
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
    view = view_of(result)
    lines = [headline(result), *view.about(), levels, *figures_of(view)]
    if result.solution is not None and view.found() is None:
        lines += answer_table(result, width) if table else []
        lines += _waiting(view) if reasons else []
    return "\n".join(lines)


def figures_of(view: View) -> list[str]:
    """Return the lines after the table of levels that say what was found, without what starts."""
    found, result = view.found(), view.result
    if found is not None:
        return found
    left_out = left_out_text(result.instance)
    lines = [] if left_out is None else [left_out]
    return [*lines, _unanswered(result) if result.solution is None else _started(view)]


def brief(result: AnyResult) -> str:
    """Return what a result prints: what is proven, without what starts."""
    return summary(result, table=False, reasons=False)


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
    solver = f"{result.method}, {view_of(result).rule}{result.seconds:.2f} s"
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


def level_rows(result: AnyResult) -> list[list[str]]:
    """Return what is known of every level as text, in the columns of `LEVEL_HEADER`."""
    return [
        [
            level_title(result.instance, level.name, level.sense),
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
    if result.limits.first_level:
        return "; ended after the first level, as asked"
    what = "all was proven" if limit is None else f"the time limit of {limit:g} s"
    how = ", --time-limit S goes on" if limit is None and result.limits.first_level is False else ""
    return f"; ended before {what}{how}"


def _has_open_level(result: AnyResult) -> bool:
    """Tell whether a level is not proven optimal, and none of its values was asked for."""
    return any(
        level.status is Status.FEASIBLE and _required(level) is None for level in result.levels
    )


# ---- What was found -----------------------------------------------------------------------------


def _unanswered(result: AnyResult) -> str:
    """Return that there is no answer, and the values of levels without what cannot be met."""
    witness = getattr(result, "witness", None)
    if witness is None:
        waiting = number_of(len(result.instance.queue), "request")
        return f"nothing found that starts any of the {waiting}"
    worth = zip(result.levels, witness.values, strict=True)
    every = (f"{level_label(result.instance, level.name)} {value:,}" for level, value in worth)
    return f"best found without what was set: {', '.join(every)}"


def _started(view: View) -> str:
    """Return how many requests start, and what else a line says of them."""
    names, queue = view.started, view.result.instance.queue
    nodes = sum(request.nodes for request in queue if request.id in names)
    text = f"started {len(names)} of {number_of(len(queue), 'request')}, "
    return f"{text}{number_of(nodes, view.unit)}{view.total()}{view.value_text}{view.left()}"


def _waiting(view: View) -> list[str]:
    """Return why requests wait, and the names of those of which nothing is known.

    Those that wait for the same reason have one line.
    """
    result, texts = view.result, view.waits
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
    known = view.started | texts.keys()
    names = [f"{r.id} ({r.nodes:,})" for r in result.instance.queue if r.id not in known]
    if names:
        more = len(names) - _MOST_NAMED
        names[_MOST_NAMED:] = [f"and {more:,} more"] if more > 0 else []
        lines.insert(0, f"waiting: {', '.join(names)}")
    return lines
