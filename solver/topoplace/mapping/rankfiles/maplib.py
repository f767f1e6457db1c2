"""Mappings as MapLib writes them (Korndoerfer et al., arXiv:2005.10413): one line per router.

After a title and the names of the columns, a line has the coordinates of a router, the number of
tasks on it, and those tasks. It does not say on which of a router's nodes a task is, so that
reading spreads them evenly: hop-bytes are kept, nodes only where a router has one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.methods._boxes import spread_over_nodes
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.rankfiles.check import require_mapping
from topoplace.snapshot.files import write_text
from topoplace.snapshot.readers.lines import field_lines, integer

_NUM_TITLES = 2
_LETTERS = "xyzt"


def write_maplib(problem: MappingProblem, nodes: IntArray, path: str | Path) -> None:
    """Write one line for every router that has tasks, its tasks separated by blanks.

    Raises
    ------
    InputError
        If `nodes` is no mapping of the instance, or the machine has no coordinates.
    """
    require_mapping(problem, nodes)
    torus = problem.torus
    order = np.lexsort((nodes, problem.routers_of(nodes)))
    used, count = np.unique(problem.routers_of(nodes), return_counts=True)
    parts = np.split(order, np.cumsum(count)[:-1])
    names = [f"{_LETTERS[d] if d < 4 else f'c{d}'}_coord" for d in range(torus.num_dims)]
    lines = ["topoplace", " ".join([*names, "number_of_processes", "process_id(s)"])]
    for router, tasks in zip(used.tolist(), parts, strict=True):
        lines.append(" ".join(map(str, [*torus.coords(router), len(tasks), *tasks.tolist()])))
    write_text(path, "\n".join(lines) + "\n")


def read_maplib(problem: MappingProblem, path: str | Path) -> IntArray:
    """Read lines ``x y z count tasks`` and return the node of every task.

    There are as many coordinates as the machine has dimensions; tasks are separated by blanks or
    commas. Up to two lines of words at the start are left out.

    Raises
    ------
    InputError
        Naming file, line and value; also if the machine has no coordinates.
    """
    file = str(path)
    torus = problem.torus
    routers = np.full(problem.num_tasks, -1, dtype=np.int64)
    where: dict[int, str] = {}
    for position, (line, words) in enumerate(field_lines(path, "#")):
        fields = " ".join(words).replace(",", " ").split()
        if position < _NUM_TITLES and fields and not fields[0].removeprefix("-").isdigit():
            continue
        numbers = [integer(text, 0, file=file, field=line) for text in fields]
        coordinates, tasks = numbers[: torus.num_dims], numbers[torus.num_dims + 1 :]
        if len(numbers) <= torus.num_dims or numbers[torus.num_dims] != len(tasks):
            expected = f"{torus.num_dims} coordinates, a number of tasks, and so many tasks"
            raise InputError(expected, file=file, field=line, value=" ".join(fields))
        if any(c >= n for c, n in zip(coordinates, torus.shape, strict=True)):
            expected = f"coordinates inside {torus.text}"
            raise InputError(expected, file=file, field=line, value=coordinates)
        router = torus.router(coordinates)
        if router in where:
            raise InputError("each router once", file=file, field=line, value=coordinates)
        where[router] = line
        if len(tasks) > problem.capacity[router]:
            expected = f"at most {problem.capacity[router]} tasks, the places on the router"
            raise InputError(expected, file=file, field=line, value=len(tasks))
        for task in tasks:
            if task >= problem.num_tasks:
                expected = f"tasks below {problem.num_tasks}"
                raise InputError(expected, file=file, field=line, value=task)
            if routers[task] >= 0:
                raise InputError("each task once", file=file, field=line, value=task)
            routers[task] = router
    missing = np.flatnonzero(routers < 0)
    if len(missing):
        raise InputError("a router for every task", file=file, value=f"no task {missing[0]}")
    return spread_over_nodes(problem, routers)
