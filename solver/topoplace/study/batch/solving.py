"""What a worker process does with a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from topoplace.errors import InputError
from topoplace.result import Interference
from topoplace.snapshot.files import text_of_document
from topoplace.snapshot.schema import MappingInstance, Snapshot
from topoplace.solving import Options, method_names, methods, solve
from topoplace.study.batch.task import Settings, Task
from topoplace.study.case import state_of
from topoplace.study.external.allocator import chosen, entry_point_names
from topoplace.study.external.trial import try_on

# The solvers are loaded with this module, before the clock of a worker's first task starts.
methods("placement")
methods("allocation")


def require_settings(problem: str, settings: Settings, path: Path) -> None:
    """Raise `InputError` for settings that no instance of a problem takes, such as a file's."""
    if problem == "mapping" and settings.command is not None:
        text = f"snapshots, which files such as {path} are not"
        raise InputError(text, field="--command", value=settings.command)
    known = method_names(problem)
    method = settings.method_for(problem)
    # Only snapshots are for allocators that are not ours.
    foreign = settings.source is not None and problem != "mapping"
    if method not in known and not foreign:
        known = known if problem == "mapping" else [*known, *entry_point_names()]
        text = f"one of {', '.join(known)}, for files such as {path}"
        raise InputError(text, field="--method", value=method, known=known)
    if problem != "placement" and settings.interference != "strict":
        text = f"no interference rule, for files such as {path}"
        raise InputError(text, field="--interference", value=settings.interference)


def solve_task(task: Task) -> str:
    """Solve one instance and return the text of its result file.

    `InputError` if it contradicts itself, or the method does not take it; `VerdictError` if that is
    an allocator that is not ours and its answer does not count.
    """
    settings, problem = task.settings, task.problem
    model = MappingInstance if problem == "mapping" else Snapshot
    state: Any = state_of(model.model_validate_json(task.document))
    who = chosen(settings.method_for(problem), settings.command, method_names(problem))
    rule = Interference(settings.interference)
    options = Options(settings.time_limit, rule, settings.seed, settings.thorough)
    if isinstance(who, str):
        return text_of_document(solve(state, who, options))
    trial = try_on(state, who, options)
    if trial.refusal is not None:
        raise trial.refusal
    return text_of_document(trial.result)
