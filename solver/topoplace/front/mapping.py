"""Map applications, and look at graphs, mappings and the nodes of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from topoplace.errors import InputError
from topoplace.formats.text import name_of
from topoplace.front.arguments import options_of, watched
from topoplace.front.documents import load
from topoplace.kernels import compile_for
from topoplace.machine.topology import Topology
from topoplace.mapping.allocated import Allocated, Ranks, topology_of
from topoplace.mapping.contention import phase_time as estimated_phase
from topoplace.mapping.graphfiles import graph_format, read_graph, read_qaplib
from topoplace.mapping.objects.applications import (
    BALANCE,
    application_names,
    problem_of,
    read_application,
    read_fixed,
)
from topoplace.mapping.onto import Source, load_places, problem_on
from topoplace.mapping.parallelism import parallelism as training_job
from topoplace.mapping.problem import MappingProblem, messages_of, prepare_mapping
from topoplace.mapping.rankfiles import node_list_beside, read_mapping, write_mapping
from topoplace.mapping.recognition import Recognition
from topoplace.mapping.recognition import recognise as recognise_graph
from topoplace.model import Model
from topoplace.result.cubes import CubesResult
from topoplace.result.hierarchy import HierarchyResult
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.files import csv_of, parse_object, read_bytes, write_text
from topoplace.snapshot.objects import APPLICATION_SCHEMA, ObjectsApplication
from topoplace.snapshot.schema import (
    MAX_TASKS,
    AnyApplication,
    GraphApplication,
    GridApplication,
    MappingInstance,
    MatrixModel,
    ObjectsGraph,
)
from topoplace.solving import Options, solve
from topoplace.solving.outcome import Watch
from topoplace.study.case import File

__all__ = [
    "MAX_TASKS",
    "GridApplication",
    "asked",
    "figures_of",
    "graph_of_file",
    "map",
    "name_of",
    "node_list_beside",
    "phase_time",
    "read_application",
    "read_fixed",
    "read_graph",
    "read_mapping",
    "recognise",
    "solved",
    "topology",
    "training_job",
    "write_nodes",
]

OF_GRAPH_FILE = "qaplib"
"""The machine that stands for the distances of the graph file."""

Application = AnyApplication | ObjectsApplication | MappingInstance | File

Placed = AllocationResult | HierarchyResult | CubesResult
"""Results that no mapping goes on yet: they are told so in a line."""


def map(
    application: Application,
    on: Source | Model | MatrixModel | Placed | Path | None = None,
    method: str = "auto",
    *,
    tasks_per_node: int = 1,
    balance: float | str | None = None,
    pooled: bool = False,
    fixed: Mapping[int, int] | None = None,
    level_costs: Sequence[int] | None = None,
    job: str | None = None,
    node_class: str | None = None,
    within: str | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    display: bool = False,
    callback: Watch | None = None,
) -> MappingResult:
    """Map the tasks or objects of an application to nodes; bound the hop-bytes of any mapping.

    Parameters
    ----------
    application
        A `grid`, `graph` or `parallelism`, the file of a graph, or a mapping instance or its file;
        or `objects`, their file, or a shipped name such as ``namd_apoa1``.
    on
        Where to: a machine (or its name, file or shorthand), a `Model` or snapshot file (its free
        nodes), or the result of a placement (the nodes of one of its jobs). Not with a mapping
        instance, which says so itself.
    method
        A name of ``methods("mapping")``.
    tasks_per_node
        Most tasks on a node.
    balance
        Of objects: most load of a node, in averages; 1.1 by default. With it, the tasks of a grid
        or graph are objects of load 1.
    pooled
        Of objects: whether the nodes of a router share their loads.
    fixed
        Of objects: those that stay, each with its node.
    level_costs
        On a tree or hierarchy, what a byte costs by the level at which its ends meet, the lowest
        first; by default two hops per level.
    job, node_class, within
        The job inside whose nodes to stay, the class of the nodes, and a prism of routers such as
        ``4x4x8@0,0,0`` to stay in.
    time_limit
        Seconds; by default the method's own limit, or none.
    seed
        Of whatever the method draws at random.
    display
        Whether to show on stderr where the solve is: one live line at a terminal.
    callback
        Called with the `Progress` of the solve a few times a second, and at its end.

    Raises
    ------
    InputError
        If an argument or a field of the instance cannot be used.
    """
    options = options_of(time_limit, seed)
    problem = asked(
        application,
        on,
        tasks_per_node=tasks_per_node,
        balance=balance,
        pooled=pooled,
        fixed=fixed,
        level_costs=level_costs,
        job=job,
        node_class=node_class,
        within=within,
    )
    return solved(problem, method, options, display, callback)


def asked(
    application: Application,
    on: Source | Model | MatrixModel | Placed | Path | None,
    *,
    tasks_per_node: int = 1,
    balance: float | str | None = None,
    pooled: bool = False,
    fixed: Mapping[int, int] | Iterable[tuple[int, int]] | None = None,
    subset: str | None = None,
    named: Mapping[str, str] = MappingProxyType({}),
    **parts: Any,
) -> MappingProblem:
    """Return the problem that `map` solves, of the same arguments.

    Parameters
    ----------
    subset
        The nodes to use, such as ``0-47,60``.
    named
        Of a graph of a file, how the instance is called, and the file.
    parts
        What `load_places` takes: `level_costs`, `job`, `node_class` and `within`.
    """
    application = _application(application)
    loaded = balance is not None or isinstance(application, ObjectsApplication)
    if isinstance(application, MappingInstance):
        if on is not None or loaded or pooled or fixed is not None:
            raise InputError("nothing beside an instance, which says it", field="application")
        return prepare_mapping(application)
    if not loaded and (pooled or fixed is not None):
        raise InputError("objects, or balance beside it", field="pooled" if pooled else "fixed")
    if on is None:
        raise InputError("a machine, an instance or a result to map to", field="on", found="None")
    if isinstance(on, HierarchyResult | CubesResult):
        found = f"a result of {on.problem}"
        raise InputError("places on a torus, mesh or tree", field="on", found=found)
    source = on.snapshot if isinstance(on, Model) else str(on) if isinstance(on, Path) else on
    places = load_places(source, **parts)
    if subset is not None:
        places = places.only(subset)
    if not loaded:
        assert not isinstance(application, ObjectsApplication), "it is loaded"
        return problem_on(places, application, tasks_per_node, **named)
    stay = fixed.items() if isinstance(fixed, Mapping) else fixed or ()
    cap = BALANCE if balance is None else str(balance)
    return problem_of(application, places, cap, pooled=pooled, fixed=stay)


def solved(
    problem: MappingProblem,
    method: str,
    options: Options,
    display: bool = False,
    callback: Watch | None = None,
) -> MappingResult:
    """Map by a method."""
    compile_for(problem.kind, [method])
    with watched(options, display, callback) as shown:
        return solve(problem, method, shown)


def write_nodes(
    problem: MappingProblem,
    result: MappingResult,
    node_list: Path | None = None,
    **forms: Path | None,
) -> None:
    """Write where tasks or objects are, by form: ``csv``, ``hostfile``, ``maplib`` and so on.

    `node_list` is where that of a ``rank_order`` goes. Without a mapping there is no file.
    """
    if result.solution is None:
        return
    nodes = np.asarray(result.solution.nodes, dtype=np.int64)
    for name, path in forms.items():
        form = name.removesuffix("_map").replace("_", "-")
        if path is None:
            continue
        if problem.instance.cap is not None:
            write_text(path, csv_of(("object", "node"), enumerate(result.solution.nodes)))
        elif form == "rank-order":
            write_mapping(path, form, problem, nodes, node_list=node_list)
        else:
            write_mapping(path, form, problem, nodes)


def figures_of(problem: MappingProblem, result: MappingResult) -> list[str]:
    """Return how long all messages of a mapping take at once, in a line; none without links."""
    if result.solution is None or problem.machine.torus is None:
        return []
    time = estimated_phase(problem, np.asarray(result.solution.nodes, dtype=np.int64))
    return [f"all messages at once: about {time:,.6g} in the same unit, by a model of shared links"]


def graph_of_file(
    graph: Path, form: str | None, flow: str | None, on: str
) -> tuple[GraphApplication, str | MatrixModel]:
    """Return the graph of a file and where to map it to: ``qaplib`` stands for its distances."""
    if on != OF_GRAPH_FILE:
        return read_graph(graph, form, flow=flow), on
    if (form or graph_format(graph)) != OF_GRAPH_FILE:
        raise InputError("a QAPLIB file with --on qaplib", file=str(graph), field="--graph")
    instance = read_qaplib(graph, flow)
    return instance.graph, instance.machine


def recognise(application: Application | GraphApplication | MappingResult) -> Recognition:
    """Return what a communication graph is: a grid, all-to-all in parts, a tree, or none of these.

    Parameters
    ----------
    application
        A `graph`, the file of one, a mapping instance or result, or its file.

    Returns
    -------
    Recognition
        It prints in a line; `tasks` has the task of every cell of a grid, `application` the grid.

    Raises
    ------
    InputError
        If the file or a field of it cannot be used.
    """
    if isinstance(application, str | Path):
        found = _application_of(application, results=True)
        application = found
    if isinstance(application, MappingResult):
        application = application.instance
    graph = application.application if isinstance(application, MappingInstance) else application
    if isinstance(graph, ObjectsApplication | ObjectsGraph):
        raise InputError("a graph or a grid", field="application", found="objects")
    return recognise_graph(messages_of(graph)[0])


def phase_time(result: MappingResult) -> float:
    """Return when all messages of a mapping are over that are sent at once: an estimate.

    In bytes per unit of bandwidth, as the largest link load, which it is never below. It is a model
    (wormhole routing, links shared max-min fairly, no start-up), in floating point.

    Raises
    ------
    InputError
        Without a mapping, or on a machine without links.
    """
    if result.solution is None:
        raise InputError("a result with a mapping", field="solution", found="none")
    nodes = np.asarray(result.solution.nodes, dtype=np.int64)
    return estimated_phase(prepare_mapping(result.instance), nodes)


def topology(
    on: Allocated | Model | Path,
    *,
    job: str | None = None,
    node_class: str | None = None,
    within: str | None = None,
    cores: int = 1,
    ranks: Ranks | None = None,
    rank_format: str = "csv",
    num_ranks: int | None = None,
) -> Topology:
    """Return the nodes of a job as its ranks see them: sizes, coordinates, hops, routes.

    Parameters
    ----------
    on
        A machine (or its name, file or shorthand): all its nodes. A `Model`, snapshot or its file:
        the free nodes, or those of a running job. A result or its file: the nodes of a job it
        started, or the tasks of a mapping, which are the ranks.
    job, node_class, within
        As of `map`.
    cores
        Most ranks on a node.
    ranks
        The node of every rank, a number (on trees also a name); or a rank file of a torus, mesh or
        matrix. By default ranks fill node after node (SMP order), in the order that results have
        on trees, else ascending.
    rank_format
        Of a rank file: ``rank-order``, ``hostfile``, ``csv``, ``maplib`` or ``scotch``.
    num_ranks
        By default as many as there is room for.

    Raises
    ------
    InputError
        If an argument cannot be used, or there is no such job.
    """
    given = on.snapshot if isinstance(on, Model) else str(on) if isinstance(on, Path) else on
    return topology_of(
        given,
        job=job,
        node_class=node_class,
        within=within,
        cores=cores,
        ranks=ranks,
        rank_format=rank_format,
        num_ranks=num_ranks,
    )


def _application(given: Application) -> AnyApplication | MappingInstance | ObjectsApplication:
    """Return an application that is given, or that a file or a name stands for."""
    if isinstance(given, str | Path):
        return _application_of(given)
    if not isinstance(given, Application):
        expected = "an application such as tp.grid(4, 4), its file or an instance"
        raise InputError(expected, field="application", found=type(given).__name__)
    return given


def _application_of(
    path: File, *, results: bool = False
) -> GraphApplication | MappingInstance | ObjectsApplication:
    """Return what a file says of an application; the instance of a result only if asked to."""
    if not results and (str(path) in application_names() or _is_application(path)):
        return read_application(path)
    if Path(path).suffix != ".json":
        return read_graph(path)
    found = load(path)
    if results and isinstance(found, MappingResult):
        return found.instance
    if not isinstance(found, MappingInstance):
        found_kind = type(found).__name__
        raise InputError("a graph or a mapping instance", file=str(path), found=found_kind)
    return found


def _is_application(path: File) -> bool:
    """Tell whether a file is an application of objects."""
    if Path(path).suffix != ".json" or not Path(path).is_file():
        return False
    return parse_object(read_bytes(path), str(path)).get("schema") == APPLICATION_SCHEMA
