"""What a worker process does with a task."""

from __future__ import annotations

from pathlib import Path

from topoplace.errors import InputError
from topoplace.mapping.problem import prepare_mapping
from topoplace.result import Interference
from topoplace.snapshot import prepare_any
from topoplace.snapshot.files import text_of_document
from topoplace.snapshot.schema import MappingInstance, Snapshot
from topoplace.solving import Options, method_names, methods, solve
from topoplace.study.batch.task import Problem, Settings, Task
from topoplace.study.external.allocator import chosen, entry_point_names
from topoplace.study.external.trial import try_on_any

# The solvers are loaded with this module, before the clock of a worker's first task starts.
methods("placement")
methods("allocation")


def known_methods(problem: Problem) -> list[str]:
    """Return the names of the methods that solve such instances."""
    return method_names(problem.value)


def require_settings(problem: Problem, settings: Settings, path: Path) -> None:
    """Refuse settings that no instance of a kind takes, such as the one in a file.

    Raises
    ------
    InputError
        Naming the option and the file.
    """
    if problem is Problem.MAPPING and settings.command is not None:
        text = f"snapshots, which files such as {path} are not"
        raise InputError(text, field="--command", value=settings.command)
    known = known_methods(problem)
    method = settings.method_for(problem)
    # Only snapshots are for allocators that are not ours.
    foreign = settings.source is not None and problem is not Problem.MAPPING
    if method not in known and not foreign:
        known = known if problem is Problem.MAPPING else [*known, *entry_point_names()]
        text = f"one of {', '.join(known)}, for files such as {path}"
        raise InputError(text, field="--method", value=method, known=known)
    if problem is not Problem.PLACEMENT and settings.interference != "strict":
        text = f"no interference rule, for files such as {path}"
        raise InputError(text, field="--interference", value=settings.interference)


def solve_task(task: Task) -> str:
    """Solve one instance and return the text of its result file.

    Raises
    ------
    InputError
        If the instance contradicts itself, or the method does not take it.
    VerdictError
        If the method is an allocator that is not ours and its answer does not count.
    """
    settings = task.settings
    method = settings.method_for(task.problem)
    limit, seed = settings.time_limit, settings.seed
    if task.problem is Problem.MAPPING:
        problem = prepare_mapping(MappingInstance.model_validate_json(task.document))
        return text_of_document(solve(problem, method, Options(limit, seed=seed)))
    snapshot = Snapshot.model_validate_json(task.document)
    who = chosen(method, settings.command, known_methods(task.problem))
    options = Options(limit, Interference(settings.interference), seed, settings.thorough)
    state = prepare_any(snapshot)
    if isinstance(who, str):
        return text_of_document(solve(state, who, options))
    trial = try_on_any(state, who, options)
    if trial.refusal is not None:
        raise trial.refusal
    return text_of_document(trial.result)
