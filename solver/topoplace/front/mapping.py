"""Map applications, and look at graphs, mappings and the nodes of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from topoplace import options
from topoplace.errors import InputError, refuse, unknown_name
from topoplace.formats.text import name_of
from topoplace.front.documents import load, options_of, watched
from topoplace.given import fitting, parse_extents, plain
from topoplace.kernels import compile_for
from topoplace.kinds import kind_named
from topoplace.machine import Torus
from topoplace.mapping.allocated import source_of
from topoplace.mapping.contention import phase_time as estimated_phase
from topoplace.mapping.graph import grid_of
from topoplace.mapping.graphfiles import graph_format, read_graph, read_qaplib
from topoplace.mapping.layouts.candidates import (
    RankedLayout,
    enumerate_layouts,
    geometry_request,
    one_per_prism,
    rank_layouts,
)
from topoplace.mapping.objects.applications import (
    BALANCE,
    application_names,
    problem_of,
    read_application,
    read_fixed,
)
from topoplace.mapping.onto import document_of, load_places, problem_on
from topoplace.mapping.parallelism import parallelism as training_job
from topoplace.mapping.pencils.obtaining import Obtained, numbered_layouts, obtained, tables_of
from topoplace.mapping.problem import (
    MappingProblem,
    messages_of,
    prepare_mapping,
    require_mapping,
)
from topoplace.mapping.rankfiles import read_mapping, require_blocks, write_mapping
from topoplace.mapping.recognition import Recognition
from topoplace.mapping.recognition import recognise as recognise_graph
from topoplace.mapping.resultfiles import RANKS_ALONE, node_list_for, write_nodes, write_ranks
from topoplace.mapping.spread.groups import spread_asked
from topoplace.model import application_of
from topoplace.options import takes
from topoplace.report.mappings import layout_document, layouts_table
from topoplace.result import Result
from topoplace.result.mapping import MappingResult
from topoplace.result.placement import CubesResult
from topoplace.snapshot.files import parse_object, read_bytes
from topoplace.snapshot.machines import load_torus
from topoplace.snapshot.objects import APPLICATION_SCHEMA, ObjectsApplication
from topoplace.snapshot.schema import (
    MAX_TASKS,
    AnyApplication,
    GraphApplication,
    GridApplication,
    MappingInstance,
    MatrixModel,
    Moves,
    ObjectsGraph,
    Snapshot,
    SpreadGroups,
)
from topoplace.snapshot.state import torus_of
from topoplace.solving import solve
from topoplace.study.case import File
from topoplace.study.external.mapping import mapping_method
from topoplace.traffic import is_series
from topoplace.types import IntArray

__all__ = [
    "MAX_TASKS",
    "RANKS_ALONE",
    "GridApplication",
    "figures_of",
    "graph_of_file",
    "layouts",
    "map",
    "name_of",
    "node_list_for",
    "phase_time",
    "problem_asked",
    "read_application",
    "read_graph",
    "recognise",
    "require_blocks",
    "solved",
    "training_job",
    "write_nodes",
    "write_ranks",
]

RANK_ORDER = "MPICH_RANK_ORDER"
"""The file of a rank order of Cray's MPI; a number is added."""

OF_GRAPH_FILE = "qaplib"
"""The machine that stands for the distances of the graph file."""

Application = AnyApplication | ObjectsApplication | MappingInstance | File


@takes(options.Map)
def map(asked: options.Map) -> MappingResult:
    """Map the tasks or objects of an application to nodes; bound the hop-bytes of any mapping."""
    options_of(asked)  # checks them
    return solved(problem_asked(asked), asked)


def problem_asked(
    asked: options.Map, named: Mapping[str, str] = MappingProxyType({})
) -> MappingProblem:
    """Return the problem that `map` solves.

    Parameters
    ----------
    named
        For a graph from a file: the name of the instance, and the file.
    """
    application, on = _application(asked.application), asked.on
    if isinstance(application, MappingInstance):
        return _problem_of_instance(application, asked)
    of_objects = asked.balance is not None or isinstance(application, ObjectsApplication)
    _refuse_others(asked, of_objects=of_objects)
    if asked.most_moves is not None and asked.mapping is None:
        raise InputError("a mapping (--mapping) with it", field="--most-moves", found="none")
    if on is None:
        raise InputError("a machine, an instance or a result to map to", field="on", found="None")
    if isinstance(on, CubesResult):
        found = f"a result of {on.problem}"
        raise InputError("places on a torus, mesh, tree or hierarchy", field="on", found=found)
    parts = ("level_costs", "job", "node_class", "within")
    places = load_places(source_of(on), **{name: getattr(asked, name) for name in parts})
    if asked.names is not None:
        places = places.named(asked.names)
    if asked.subset is not None:
        places = places.only(asked.subset)
    if not of_objects:
        assert not isinstance(application, ObjectsApplication), "it is loaded"
        most = places.most_tasks(asked.tasks_per_node)
        spread = _spread(application, asked)
        return _limited(problem_on(places, application, most, **named, spread=spread), asked)
    fixed: Any = asked.fixed or ()
    if isinstance(fixed, Path):
        fixed = read_fixed(fixed)
    stay = fixed.items() if isinstance(fixed, Mapping) else fixed
    cap = BALANCE if asked.balance is None else str(asked.balance)
    problem = problem_of(application, places, cap, pooled=asked.pooled, fixed=stay)
    return _limited(problem, asked)


def _limited(problem: MappingProblem, asked: options.Map) -> MappingProblem:
    """Return a problem, with the limit of moves if one is given."""
    if asked.most_moves is None:
        return problem
    moves = Moves(nodes=_mapping(problem, asked).tolist(), most=asked.most_moves)
    return prepare_mapping(problem.instance.model_copy(update={"moves": moves}))


def _mapping(problem: MappingProblem, asked: options.Map) -> IntArray:
    """Return the node of every task in the mapping that is given."""
    given: Any = asked.mapping
    if isinstance(given, str | Path):
        return read_mapping(given, asked.mapping_format, problem)
    if isinstance(given, MappingResult):
        given = () if given.solution is None else given.solution.nodes
    if is_series(given):
        given = _by_label(given, problem)
    nodes = np.asarray(fitting(given, "Sequence[int]", "mapping"), dtype=np.int64)
    require_mapping(problem, nodes)
    return nodes


def _by_label(given: Any, problem: MappingProblem) -> list[Any]:
    """Return the nodes of a series of pandas in the order of tasks, which its index has."""
    numbers = [str(task) for task in range(problem.num_tasks)]
    names = getattr(problem.instance.application, "names", None) or numbers
    labels = [str(label) for label in plain(list(given.index))]
    if labels == numbers:  # counted, by default
        return list(given.tolist())
    wrong = {*labels} ^ {*names}
    if wrong or len(labels) > len(names):
        found = f"{min(wrong)} in one of them alone" if wrong else "some twice"
        raise InputError("the tasks as the index of a series", field="mapping", found=found)
    nodes = dict(zip(labels, given.tolist(), strict=True))
    return [nodes[name] for name in names]


def _spread(application: AnyApplication, asked: options.Map) -> list[SpreadGroups]:
    """Return the groups of a spread, if that is the objective."""
    if asked.objective not in (None, HOP_BYTES, SPREAD):
        raise unknown_name(asked.objective, (HOP_BYTES, SPREAD), field="objective")
    if asked.objective != SPREAD:
        expected = "the objective spread with this option"
        refuse(expected, groups=asked.groups, spread_level=asked.spread_level)
        return []
    return spread_asked(application, asked.groups, asked.spread_level)


def _problem_of_instance(instance: MappingInstance, asked: options.Map) -> MappingProblem:
    """Return the problem of an instance, which says all that options could say of it."""
    _refuse_others(asked, of_objects=asked.balance is not None or instance.cap is not None)
    given = {name: getattr(asked, name) for name in _SAID}
    refuse("no such option with an instance, which says it", **given)
    return prepare_mapping(instance)


HOP_BYTES, SPREAD = "hop-bytes", "spread"
_OF_SPREAD = ("objective", "groups", "spread_level")
_OF_OBJECTS = ("pooled", "fixed")
"""Options that only mappings of objects have."""
_SAID = ("on", "balance", "names", "most_moves", *_OF_OBJECTS, *_OF_SPREAD)
"""What an instance says itself."""


def _refuse_others(asked: options.Map, *, of_objects: bool) -> None:
    """Raise `InputError` for options that only tasks have, or only objects."""
    if not of_objects:
        own = {name: getattr(asked, name) for name in _OF_OBJECTS}
        refuse("--objects or --balance with this option", **own)
        return
    tasks = _options_of_tasks(asked)
    if asked.cell is not None:
        tasks["cell"] = "x".join(str(size) for size in asked.cell)
    tasks |= {name: getattr(asked, name) for name in _OF_SPREAD}
    refuse("no such option for objects", **tasks, tasks_per_node=(asked.tasks_per_node or 1) > 1)


def _options_of_tasks(asked: options.Map) -> dict[str, Any]:
    """Return the options that only mappings of tasks have."""
    names = ("cell", "column_major", "node_order", "layout", "max_depth")
    found = {name: getattr(asked, name) for name in names}
    return found if asked.most_moves is not None else found | {"mapping": asked.mapping}


def solved(problem: MappingProblem, asked: options.Map) -> MappingResult:
    """Map by the method asked for, ``auto`` for the usual one."""
    more, own = _options_of_tasks(asked), asked.method
    method = own if isinstance(own, str) else mapping_method(own)
    if more.pop("mapping", None) is not None:
        more["start"] = _mapping(problem, asked)
        method = "given" if method == "auto" else method
    if method == "auto" and asked.layout is not None:
        method = "topaware"
    if asked.layout is not None and method != "topaware":
        raise InputError("topaware with --layout", field="method", value=method)
    if method == "auto":
        method = kind_named(problem.kind).usual
    compile_for(problem.kind, [method if isinstance(method, str) else method.name])
    with watched(replace(options_of(asked), **more), asked) as settings:
        found: MappingResult = solve(problem, method, settings)
        return found


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
        A `graph` or what it takes as an array, frame or graph, the file of one, a mapping instance
        or result, or its file.

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
        application = _application_of(application, results=True)
    application = application_of(application)
    holder = getattr(application, "instance", application)  # of a result
    graph: Any = getattr(holder, "application", holder)  # of an instance
    if isinstance(graph, ObjectsApplication | ObjectsGraph):
        raise InputError("a graph or a grid", field="application", found="objects")
    if not isinstance(graph, AnyApplication):
        found = type(application).__name__
        raise InputError("a graph or a grid", field="application", found=found)
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


def _application(given: Application) -> AnyApplication | MappingInstance | ObjectsApplication:
    """Return an application that is given, or that a file or a name stands for."""
    if isinstance(given, str | Path):
        return _application_of(given)
    found: Any = application_of(given)
    if not isinstance(found, AnyApplication | ObjectsApplication | MappingInstance):
        expected = "an application such as tp.grid(4, 4), its file or an instance"
        raise InputError(expected, field="application", found=type(given).__name__)
    return found


def _application_of(
    path: File, *, results: bool = False
) -> GraphApplication | MappingInstance | ObjectsApplication:
    """Return what a file says of an application; the instance of a result only if asked to."""
    if not results and (str(path) in application_names() or _is_application(path)):
        return read_application(path)
    if Path(path).suffix != ".json":
        return read_graph(path)
    found = load(path)
    if results:
        found = getattr(found, "instance", found)
    if not isinstance(found, MappingInstance):
        found_kind = type(found).__name__
        raise InputError("a graph or a mapping instance", file=str(path), found=found_kind)
    return found


def _is_application(path: File) -> bool:
    """Return whether a file is an application of objects."""
    if Path(path).suffix != ".json" or not Path(path).is_file():
        return False
    return parse_object(read_bytes(path), str(path)).get("schema") == APPLICATION_SCHEMA


@dataclass(frozen=True)
class Layouts:
    """Layouts, the best first, each with its number, and the text that asks for their prisms.

    With a `problem`, its nodes are those that the layouts may lie on.
    """

    numbered: Sequence[tuple[int, RankedLayout]]
    geometry: str
    problem: MappingProblem | None = None
    max_depth: int | None = None

    def obtained(self, limit: int) -> list[Obtained | str]:
        """Return where some of the layouts lie, or why nowhere; none without nodes."""
        if self.problem is None:
            return []
        tables = tables_of(self.problem)
        listed = self.numbered[:limit]
        return [obtained(self.problem, e.layout, tables, self.max_depth) for _, e in listed]

    def document(self, limit: int, there: Sequence[Obtained | str]) -> dict[str, object]:
        """Return the document for JSON, with some of the layouts, and where they lie."""
        documents = [
            layout_document(number, entry, where, self.problem)
            for (number, entry), where in zip_longest(self.numbered[:limit], there)
        ]
        return {"layouts": documents, "num_layouts": len(self.numbered), "geometry": self.geometry}

    def table(self, limit: int, there: Sequence[Obtained | str]) -> str:
        """Return some of the layouts as a table."""
        return layouts_table(self.numbered[:limit], there, self.problem)

    def write(self, folder: Path, there: Sequence[Obtained | str]) -> list[Path]:
        """Write the rank order and the node list of every layout that lies somewhere."""
        assert self.problem is not None
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for (number, _), where in zip(self.numbered, there, strict=False):
            if not isinstance(where, str):
                path = folder / f"{RANK_ORDER}-{number}"
                write_mapping(path, "rank-order", self.problem, where.nodes)
                written.append(path)
        return written


def layouts(application: GridApplication, asked: options.Layouts) -> Layouts:
    """List every admissible layout of a grid in a region of a machine, or on some of its nodes.

    They are on nodes where these are given: by a snapshot, a result, a subset, or a region with an
    origin.
    """
    known = document_of(asked.on)
    is_machine = not isinstance(known, Result | Snapshot)
    given = asked.subset is not None or "@" in (asked.within or "")
    problem = None
    if is_machine and not given:
        refuse(
            "a snapshot, --subset or --within 4x4@0,0 with this option",
            job=asked.job,
            rank_files=asked.rank_files,
        )
        ranked, torus = _in_region(application, asked)
    else:
        parts = ("job", "node_class", "within")
        places = load_places(known, **{name: getattr(asked, name) for name in parts})
        if asked.subset is not None:
            places = places.only(asked.subset)
        # tasks that do not fit have no layout there either, which is no error here
        problem = problem_on(places, application, asked.tasks_per_node)
        torus = problem.torus
        ranked = numbered_layouts(problem, asked.max_depth)
    listed = [
        (number, entry)
        for number, entry in enumerate(ranked, start=1)
        if (asked.stagger or not entry.layout.stagger) and (entry.balanced or not asked.balanced)
    ]
    geometry = geometry_request([entry for _, entry in listed], torus)
    return Layouts(listed, geometry, problem, asked.max_depth)


def _in_region(
    application: GridApplication, asked: options.Layouts
) -> tuple[list[RankedLayout], Torus]:
    """Return the layouts in a region of a machine, by default all of it, wherever it is."""
    torus = torus_of(load_torus(asked.on))
    region = torus.shape if asked.within is None else parse_extents(asked.within, "--within")
    if len(region) != torus.num_dims or any(
        e > n for e, n in zip(region, torus.shape, strict=True)
    ):
        within = "x".join(str(extent) for extent in region)
        raise InputError(f"a region inside {torus.text}", field="--within", value=within)
    if asked.max_depth is not None:
        region = (*region[:-1], min(region[-1], asked.max_depth))
    virtual = grid_of(application)
    found = enumerate_layouts(
        virtual,
        asked.tasks_per_node,
        torus.nodes_per_router,
        region,
        rings=[w and e == n for e, n, w in zip(region, torus.shape, torus.wrap, strict=True)],
        stagger=True,
    )
    return one_per_prism(rank_layouts(found, virtual, torus, asked.tasks_per_node)), torus
