"""How a worker process solves a task."""

from __future__ import annotations

from typing import Any

from topoplace.kinds import kind_named
from topoplace.result import Interference
from topoplace.snapshot.files import text_of_document
from topoplace.snapshot.schema import Snapshot
from topoplace.solving import Options, method_names, method_of, solve
from topoplace.solving.solve import frame_of, tree_objective
from topoplace.study.batch.task import Task
from topoplace.study.case import state_of
from topoplace.study.external.allocator import chosen


def prepare(task: Task) -> None:
    """Load the method of a task, and the code that reads and writes its documents."""
    frame_of(task.problem)
    method_of(task.problem, task.settings.method_for(task.problem))


def solve_task(task: Task) -> str:
    """Solve one instance and return the text of its result file.

    `InputError` if it contradicts itself, or the method does not take it; `VerdictError` if it is
    an external allocator whose answer does not count.
    """
    settings, problem = task.settings, task.problem
    model = kind_named(problem).get("instance") or Snapshot
    objective = tree_objective(settings.objective)
    state: Any = state_of(model.model_validate_json(task.document), objective)
    who = chosen(settings.method_for(problem), settings.command, method_names(problem))
    rule = Interference(settings.interference)
    options = Options(settings.time_limit, rule, settings.seed, settings.first_level)
    if isinstance(who, str):
        return text_of_document(solve(state, who, options))
    from topoplace.study.external.trial import try_on  # noqa: PLC0415 - only these need it

    trial = try_on(state, who, options)
    if trial.refusal is not None:
        raise trial.refusal
    return text_of_document(trial.result)
