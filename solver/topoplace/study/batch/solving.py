"""What a worker process does with a task."""

from __future__ import annotations

# The solvers are loaded with this module, before the clock of a worker's first task starts.
import topoplace.placement.registered
import topoplace.placement.tree.registered  # noqa: F401
from topoplace.mapping.outcome import MapOptions
from topoplace.mapping.problem import prepare_mapping
from topoplace.mapping.solve import map_tasks, method_names
from topoplace.placement.problem import Options
from topoplace.placement.solve import methods, place
from topoplace.placement.tree.problem import TreeOptions
from topoplace.placement.tree.solve import allocate, tree_methods
from topoplace.result import Interference
from topoplace.snapshot.application import MappingInstance
from topoplace.snapshot.files import text_of_document
from topoplace.snapshot.schema import Snapshot
from topoplace.snapshot.state import prepare
from topoplace.snapshot.tree_state import prepare_tree
from topoplace.study.batch.task import Problem, Task


def known_methods(problem: Problem) -> list[str]:
    """Return the names of the methods that solve such instances."""
    if problem is Problem.PLACEMENT:
        return list(methods())
    return list(tree_methods()) if problem is Problem.ALLOCATION else method_names()


def solve(task: Task) -> str:
    """Solve one instance and return the text of its result file.

    Raises
    ------
    InputError
        If the instance contradicts itself, or the method does not take it.
    """
    settings = task.settings
    method = settings.method_for(task.problem)
    limit, seed = settings.time_limit, settings.seed
    if task.problem is Problem.MAPPING:
        problem = prepare_mapping(MappingInstance.model_validate_json(task.document))
        return text_of_document(map_tasks(problem, method, MapOptions(limit, seed)))
    snapshot = Snapshot.model_validate_json(task.document)
    if task.problem is Problem.ALLOCATION:
        allocated = allocate(prepare_tree(snapshot), method, TreeOptions(limit, seed))
        return text_of_document(allocated)
    options = Options(limit, Interference(settings.interference), seed)
    return text_of_document(place(prepare(snapshot), method, options))
