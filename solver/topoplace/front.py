"""The front door: load, solve, compare and check from Python (`import topoplace as tp`)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from topoplace.certify.check import check_document
from topoplace.certify.report import Report
from topoplace.errors import InputError, unknown_name
from topoplace.kernels import compile_for
from topoplace.machine.topology import Topology
from topoplace.mapping.allocated import Allocated, Ranks, topology_of
from topoplace.mapping.contention import phase_time as estimated_phase
from topoplace.mapping.graph import grid_of
from topoplace.mapping.objects.applications import (
    BALANCE,
    application_names,
    problem_of,
    read_application,
)
from topoplace.mapping.objects.problem import ObjectsProblem, prepare_objects
from topoplace.mapping.onto import Source, load_places, problem_on
from topoplace.mapping.parallelism import parallelism_graph
from topoplace.mapping.problem import MappingProblem, graph_of, prepare_mapping
from topoplace.mapping.recognition import Recognition
from topoplace.mapping.recognition import recognise as recognise_graph
from topoplace.model import Machine, Model
from topoplace.result import Interference, PlacementResult, Result
from topoplace.result.base import Kept
from topoplace.result.cubes import CubesResult
from topoplace.result.frontier import Frontier
from topoplace.result.hierarchy import HierarchyResult
from topoplace.result.mapping import MappingResult
from topoplace.result.objects import ObjectsResult
from topoplace.result.optima import Optima
from topoplace.result.repack import RepackResult
from topoplace.result.several import Several
from topoplace.result.tree import AllocationResult
from topoplace.snapshot import AnyState
from topoplace.snapshot.files import machine_names, parse_object, read_bytes, snapshot_names
from topoplace.snapshot.machines import PROBLEMS, is_machine, load_machine
from topoplace.snapshot.objects import (
    APPLICATION_SCHEMA,
    ObjectsApplication,
    ObjectsInstance,
)
from topoplace.snapshot.schema import (
    MAX_COST,
    AnyApplication,
    GraphApplication,
    GridApplication,
    KeepShape,
    MappingInstance,
    MatrixModel,
    ParallelismApplication,
    RepackInstance,
    Snapshot,
)
from topoplace.snapshot.state import SnapshotState
from topoplace.solving import Options, method_names, solve
from topoplace.solving import methods as registered
from topoplace.solving.outcome import Display, Progress, Watch
from topoplace.solving.solve import maps_in
from topoplace.study.audit.cases import Source as Audited
from topoplace.study.audit.cases import counting
from topoplace.study.audit.live import cases_of
from topoplace.study.audit.run import Audit, ResultFiles, audit_cases, require_contract
from topoplace.study.case import Document, File, load_cases, load_document
from topoplace.study.case import Source as Comparable
from topoplace.study.compare import Comparison
from topoplace.study.compare import compare as compare_cases
from topoplace.study.what_if import Changes, WhatIf, what_if

Instance = Model | Snapshot | File | Document
Application = AnyApplication | MappingInstance | File
Objects = ObjectsApplication | ObjectsInstance

Placed = AllocationResult | HierarchyResult | CubesResult
"""Results that no mapping goes on yet: they are told so in a line."""

MAX_SEED = 2**31 - 1

_PROBLEMS = (*PROBLEMS.values(), "mapping", "objects")


def load(
    source: File | Document,
) -> Model | Machine | MappingInstance | ObjectsInstance | Result[Any, Any, Any] | Several:
    """Return what a file, a shipped name or a document in memory holds.

    Parameters
    ----------
    source
        A path, a shipped name such as ``blue_waters_60`` (a snapshot) or ``tpu_v4`` (a machine),
        a shorthand of a machine such as ``torus:8x8x8``, or a document as JSON has it.

    Returns
    -------
    Model, a machine such as TorusModel, MappingInstance, ObjectsInstance, Result, Frontier, Optima
        Of a snapshot, a machine, an instance of a mapping or of objects, a result, a frontier, or
        all optima.

    Raises
    ------
    InputError
        Naming the file and all fields at fault.
    """
    if isinstance(source, str) and is_machine(source):
        return load_machine(source)
    found = load_document(source)
    if isinstance(found, MappingProblem | ObjectsProblem):
        return found.instance
    return found if isinstance(found, Kept) else Model.of(found.snapshot)


def place(
    instance: Instance,
    method: str = "exact",
    *,
    time_limit: float | None = None,
    interference: str = "strict",
    contract: str | None = None,
    seed: int = 0,
    thorough: bool = False,
    required: Mapping[str, int] | None = None,
    objective: str | None = None,
    display: bool = False,
    callback: Watch | None = None,
) -> PlacementResult | AllocationResult | HierarchyResult | CubesResult:
    """Place the queue of an instance on its machine and prove how good the answer is.

    Parameters
    ----------
    instance
        A `Model`, or whatever `load` takes for one.
    method
        A name of ``methods("placement")``, on trees of ``methods("allocation")``, on hierarchies
        of ``methods("hierarchy")``, on pods of cubes of ``methods("cubes")``.
    time_limit
        Seconds; by default some 300 for the method ``exact``, none for others.
    interference
        On tori, which jobs may share links: ``strict`` (none), ``tolerant`` (tolerant ones with
        each other) or ``off`` (all).
    contract
        On hierarchies, what a scheduler promises requests beyond what these say: ``slurm-block``.
    seed
        Of whatever the method draws at random.
    thorough
        On tori, whether ``exact`` spends what is left of the time limit on the later levels.
    required
        By level what is required of it instead of its optimum, at least this of levels that are
        maximised, at most of others: ``{"nodes": 6000}``. Of method ``exact``, not on trees.
    objective
        ``nodes,hop-bytes`` on tori: the applications of requests are mapped, and the second level
        is their bytes x hops. By default the levels of the machine.
    display
        Whether to show on stderr where the solve is: one live line at a terminal.
    callback
        Called with the `Progress` of the solve a few times a second, and at its end.

    Raises
    ------
    InputError
        If an argument or a field of the instance cannot be used.
    """
    options = _options(time_limit, seed, interference)
    state = _prepared(instance, contract, options)
    options = replace(options, thorough=thorough, required=dict(required or {}))
    options = replace(options, maps=maps_in(objective))
    assert not isinstance(state.snapshot.machine, str), "a model has its machine"
    compile_for(PROBLEMS[state.snapshot.machine.kind], [method])
    with _watched(options, display, callback) as watched:
        return solve(state, method, watched)


def frontier(
    instance: Instance,
    levels: Sequence[str] = ("nodes", "shape"),
    *,
    time_limit: float | None = None,
    interference: str = "strict",
    contract: str | None = None,
    seed: int = 0,
    display: bool = False,
    callback: Watch | None = None,
) -> Frontier:
    """Trade levels of placements off: return the best placements, and prove that these are all.

    Parameters
    ----------
    instance
        A `Model`, or whatever `load` takes for one, of a torus, mesh, hierarchy or pod of cubes.
    levels
        Two or three levels of the objective; of the others anything will do.
    time_limit
        Seconds; by default some 300. What is open then is told.
    interference, contract, seed, display, callback
        As of `place`.

    Returns
    -------
    Frontier
        Its `points`; printed, it is a table. It plots itself, and can be checked.

    Raises
    ------
    InputError
        If an argument or a field of the instance cannot be used.
    """
    from topoplace.placement.trade_off import traded_off  # noqa: PLC0415 - heavy

    options = _options(time_limit, seed, interference)
    state = _prepared(instance, contract, options)
    assert not isinstance(state.snapshot.machine, str), "a model has its machine"
    compile_for(PROBLEMS[state.snapshot.machine.kind], ["exact"])
    with _watched(options, display, callback) as watched:
        return traded_off(state, levels, watched)


def optima(
    instance: Instance,
    most: int = 10,
    *,
    levels: Sequence[str] = (),
    distinct: str | None = None,
    time_limit: float | None = None,
    interference: str = "strict",
    contract: str | None = None,
    seed: int = 0,
    display: bool = False,
    callback: Watch | None = None,
) -> Optima:
    """Find placements that are as good as any other one, and prove that these are all.

    Parameters
    ----------
    instance
        A `Model`, or whatever `load` takes for one, of a torus, mesh, hierarchy or pod of cubes.
    most
        How many are enough.
    levels
        The first levels of the objective, which count; all by default.
    distinct
        What tells placements apart: who starts (``started``, the default but on tori), on which
        prisms (``prisms``, there the default), or on which nodes (``nodes``). Requests that are
        equal may exchange their places.
    time_limit
        Seconds; by default some 300.
    interference, contract, seed, display, callback
        As of `place`.

    Returns
    -------
    Optima
        Its `points`, and each as a result of its own by `result`; printed, it is a table. It plots
        itself, and can be checked.

    Raises
    ------
    InputError
        If an argument or a field of the instance cannot be used.
    """
    from topoplace.placement.optima import optima_of  # noqa: PLC0415 - heavy

    options = _options(time_limit, seed, interference)
    state = _prepared(instance, contract, options)
    assert not isinstance(state.snapshot.machine, str), "a model has its machine"
    compile_for(PROBLEMS[state.snapshot.machine.kind], ["exact"])
    with _watched(options, display, callback) as watched:
        return optima_of(state, most, levels, distinct, watched)


def repack(
    instance: Instance,
    start: Sequence[str],
    *,
    fixed: Sequence[str] = (),
    costs: Mapping[str, int] | None = None,
    keep_shape: str = "as-good",
    time_limit: float | None = None,
    interference: str = "strict",
    seed: int = 0,
    display: bool = False,
    callback: Watch | None = None,
) -> RepackResult:
    """Find the fewest running jobs to move so that requests start, and prove that fewer do not do.

    Parameters
    ----------
    instance
        A `Model` of a torus or mesh, or whatever `load` takes for one.
    start
        Ids of the requests that have to start.
    fixed
        Ids of running jobs that stay; those without a prism do anyway.
    costs
        What it costs to move running jobs, by id; 1 by default. Nodes moved come second.
    keep_shape
        Shapes for jobs that move: ``as-good`` (of no less shape score), ``same`` extents, ``any``.
    time_limit, interference, seed, display, callback
        As of `place`.

    Raises
    ------
    InputError
        If an argument or a field of the instance cannot be used.
    """
    from topoplace.placement.torus.repack.problem import repack_problem  # noqa: PLC0415 - heavy

    options = _options(time_limit, seed, interference)
    document = repack_instance(
        _model_of(instance).prepare().snapshot, start, fixed, costs or {}, keep_shape
    )
    problem = repack_problem(document, options.interference)
    compile_for("repack", ["exact"])
    with _watched(options, display, callback) as watched:
        return solve(problem, "exact", watched)


def whatif(
    instance: Instance,
    changes: Sequence[Changes],
    method: str = "exact",
    *,
    worth: bool = False,
    time_limit: float | None = None,
    interference: str = "strict",
    seed: int = 0,
    display: bool = False,
    callback: Watch | None = None,
) -> WhatIf:
    """Place an instance as it is and after changes, and say what each change can gain at most.

    Parameters
    ----------
    instance
        A `Model`, or whatever `load` takes for one.
    changes
        Scenarios, each a mapping or a list of pairs, from what is changed to how: ``add_down`` and
        ``free`` nodes (as text, such as ``0-3,8``), ``without_job`` (the id of one that runs or
        waits), ``with_request`` (its fields), ``weights`` of the shape score, and ``interference``.
    method
        A placement method. What changes can gain at most needs one that proves, as ``exact`` does.
    worth
        Whether to say for each running job what its release can gain at most.
    time_limit, interference, seed, display, callback
        As of `place`, for each solve; the rule is that of scenarios that do not change it.

    Returns
    -------
    WhatIf
        Its `scenarios`, the base first, each with its `result`; and `worth`. Printed, it is tables.

    Raises
    ------
    InputError
        If an argument, a change or a field of the instance cannot be used.
    """
    options = _options(time_limit, seed, interference)
    state = _prepared(instance, None, options)
    assert not isinstance(state.snapshot.machine, str), "a model has its machine"
    compile_for(PROBLEMS[state.snapshot.machine.kind], [method])
    with _watched(options, display, callback) as watched:
        return what_if(state, changes, method, watched, worth=worth)


def repack_instance(
    snapshot: Snapshot,
    start: Sequence[str],
    fixed: Sequence[str],
    costs: Mapping[str, int],
    keep_shape: str,
) -> RepackInstance:
    """Return an instance of repacking; `InputError` names what is wrong with it."""
    if not start:
        raise InputError("requests to start", field="start", found="none")
    if keep_shape not in list(KeepShape):
        raise unknown_name(keep_shape, KeepShape, field="keep_shape")
    for name, cost in costs.items():
        if not 1 <= cost <= MAX_COST:
            raise InputError(f"from 1 to {MAX_COST}", field=f"costs.{name}", value=cost)
    return RepackInstance(
        name=snapshot.name,
        snapshot=snapshot,
        start=list(start),
        fixed=list(fixed),
        costs=dict(costs),
        keep_shape=KeepShape(keep_shape),
    )


def map(
    application: Application | Objects,
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
) -> MappingResult | ObjectsResult:
    """Map the tasks or objects of an application to nodes; bound the hop-bytes of any mapping.

    Parameters
    ----------
    application
        A `grid`, `graph` or `parallelism`, the file of a graph, or a mapping instance or its file;
        or `objects`, their file, a shipped name such as ``namd_apoa1``, or an instance of objects.
    on
        Where to: a machine (or its name, file or shorthand), a `Model` or snapshot file (its free
        nodes), or the result of a placement (the nodes of one of its jobs). Not with a mapping
        instance, which says so itself.
    method
        A name of ``methods("mapping")``, for objects of ``methods("objects")``.
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
    options = _options(time_limit, seed)
    if isinstance(application, str | Path):
        application = _application_of(application)
    problem: MappingProblem | ObjectsProblem
    if isinstance(application, ObjectsInstance):
        if on is not None or balance is not None or pooled or fixed is not None:
            raise InputError("nothing beside an instance, which says it", field="application")
        problem = prepare_objects(application)
    elif isinstance(application, MappingInstance):
        if on is not None:
            raise InputError("no places beside those of the instance", field="on")
        problem = prepare_mapping(application)
    elif on is None:
        raise InputError("a machine, an instance or a result to map to", field="on", found="None")
    elif isinstance(on, HierarchyResult | CubesResult):
        found = f"a result of {on.problem}"
        raise InputError("places on a torus, mesh or tree", field="on", found=found)
    else:
        source = on.snapshot if isinstance(on, Model) else str(on) if isinstance(on, Path) else on
        places = load_places(
            source, level_costs=level_costs, job=job, node_class=node_class, within=within
        )
        if balance is not None or isinstance(application, ObjectsApplication):
            problem = problem_of(
                application,
                places,
                BALANCE if balance is None else str(balance),
                pooled=pooled,
                fixed=(fixed or {}).items(),
            )
        else:
            problem = problem_on(places, application, tasks_per_node)
    is_objects = isinstance(problem, ObjectsProblem)
    if not is_objects and (pooled or fixed is not None):
        raise InputError("objects, or balance beside it", field="pooled" if pooled else "fixed")
    compile_for(problem.kind, ["search" if is_objects and method == "auto" else method])
    with _watched(options, display, callback) as watched:
        if isinstance(problem, ObjectsProblem):
            return solve(problem, "search" if method == "auto" else method, watched)
        return solve(problem, method, watched)


def compare(
    *sources: Model | Comparable,
    methods: Sequence[str] | None = None,
    time_limit: float | None = None,
    interference: str = "strict",
    seed: int = 0,
    display: bool = False,
    callback: Watch | None = None,
) -> Comparison:
    """Run methods on instances and hold all results of each against the best certified bound.

    Parameters
    ----------
    sources
        Instances and results of any problem, their files, and folders of these. A result stands
        for its method, which is not run again.
    methods
        Names of methods; by default all of ours that suit an instance, an empty list for none.
    time_limit, interference, seed, display, callback
        As of `place`, for each solve.

    Returns
    -------
    Comparison
        Its `rows`; printed, it is the table.

    Raises
    ------
    InputError
        If an argument or a field of an instance cannot be used, or there is nothing to compare.
    TopoplaceError
        If a conforming answer beats a proven bound: then one of the two is wrong.
    """
    given = [source.snapshot if isinstance(source, Model) else source for source in sources]
    cases, skipped = load_cases(given)
    options = _options(time_limit, seed, interference)
    for kind in dict.fromkeys(case.kind for case in cases):
        compile_for(kind, method_names(kind) if methods is None else methods)
    with _watched(options, display, callback) as watched:
        found = compare_cases(cases, methods, watched)
    return replace(found, notes=(*skipped, *found.notes))


def audit(
    *sources: Audited | Model,
    after: File | Snapshot | Model | None = None,
    contract: str | None = None,
    levels: Sequence[str] | None = None,
    command: str | None = None,
    states: int | None = None,
    on: str | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    results: str | Path | None = None,
    display: bool = False,
) -> Audit:
    """Hold decisions of schedulers against the rules and the proven optimum.

    Parameters
    ----------
    sources
        Files of recorded decisions, results on hierarchies, their files, and folders of these; or,
        with `after`, the snapshot before.
    after
        The snapshot after: what of the queue of the one before runs in it was started.
    contract
        What the scheduler promises requests beyond what these say: ``slurm-block``.
    levels
        Levels of the machine whose domains count; by default all, but of Slurm's topology/block
        the base blocks and the nodes.
    command
        A live allocator, as ``[NAME=]PROG ARGS``: it gets the states of recorded decisions as JSON
        lines on stdin and prints them with its answers. Then `sources` are files of such lines.
    states
        How many states to draw for `command`, instead of those of `sources`.
    on
        A pod of cubes to draw them on, such as ``cubes:64``; by default racks of hosts.
    time_limit
        Seconds of each solve.
    seed
        Of each solve, and of the states drawn.
    results
        A folder for the results that prove the optima.
    display
        Whether to show on stderr how many decisions are judged.

    Returns
    -------
    Audit
        Its `rows`; printed, it is tables. `exit_code` says what the command would end with.

    Raises
    ------
    InputError
        If an argument or a field of a decision cannot be used, or there is nothing to audit.
    TopoplaceError
        If the checker does not confirm an optimum, or a decision beats it: one is wrong then.
    """
    options = _options(time_limit, seed)
    require_contract(contract)
    given = [one.snapshot if isinstance(one, Model) else one for one in sources]
    later = after.snapshot if isinstance(after, Model) else after
    cases, notes = cases_of(given, later, command, states, seed, on)
    cases = [counting(case, levels) for case in cases]
    files = ResultFiles(None if results is None else Path(results))
    compile_for("hierarchy", ["exact"])
    with Display() if display else contextlib.nullcontext() as shown:

        def progress(done: int, total: int) -> None:
            if shown is not None:
                shown.show(f"audit: {done:,} of {total:,}")

        return audit_cases(
            cases,
            contract=contract,
            options=options,
            notes=notes,
            keep=files.keep,
            progress=progress,
        )


def check(result: Kept | File | Document) -> Report:
    """Recompute every claim of a result or frontier from the instance inside, with code apart.

    Returns
    -------
    Report
        Its claims, and whether all hold (`holds`) and are verified here (`verified`).

    Raises
    ------
    InputError
        If what is given is no result.
    """
    found = result if isinstance(result, Kept) else load(result)
    if not isinstance(found, Kept):
        raise InputError("a result", field="result", found=type(found).__name__)
    return check_document(found)


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
        if isinstance(found, ObjectsApplication | ObjectsInstance):
            raise InputError("a graph or a grid", file=str(application), found="objects")
        application = found
    if isinstance(application, MappingResult):
        application = application.instance
    if isinstance(application, MappingInstance):
        application = application.application
    if isinstance(application, GridApplication):
        return recognise_graph(grid_of(application).graph())
    if isinstance(application, ParallelismApplication):
        return recognise_graph(parallelism_graph(application))
    return recognise_graph(graph_of(application))


def phase_time(result: MappingResult | ObjectsResult) -> float:
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
    if isinstance(result, ObjectsResult):
        problem = prepare_objects(result.instance).plain
    else:
        problem = prepare_mapping(result.instance)
    return estimated_phase(problem, np.asarray(result.solution.nodes, dtype=np.int64))


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


def machines() -> list[str]:
    """Return the names of the shipped machines, which `load` and `Model` take."""
    return machine_names()


def snapshots() -> list[str]:
    """Return the names of the shipped snapshots, which `load` and `place` take."""
    return snapshot_names()


def methods(problem: str | None = None) -> dict[str, str]:
    """Return the methods of a problem, each with what it does in a sentence.

    Parameters
    ----------
    problem
        ``placement`` (on tori), ``allocation`` (on trees), ``hierarchy``, ``cubes``,
        ``mapping`` or ``objects``; by default all, their names before those of the methods:
        ``placement exact``.

    Raises
    ------
    InputError
        If there is no such problem.
    """
    if problem is None:
        return {f"{kind} {name}": x for kind in _PROBLEMS for name, x in methods(kind).items()}
    if problem not in _PROBLEMS:
        raise unknown_name(problem, _PROBLEMS, field="problem")
    return {name: method.summary for name, method in registered(problem).items()}


def _prepared(instance: Instance, contract: str | None, options: Options) -> AnyState:
    """Return an instance ready to be placed, under a contract and with a rule that fit it."""
    state = _model_of(instance).prepare()
    if contract is not None:
        from topoplace.placement.hierarchy.contract import prepared_under  # noqa: PLC0415 - rare

        state = prepared_under(state.snapshot, contract)
    if not isinstance(state, SnapshotState) and options.interference is not Interference.STRICT:
        expected = "strict, but on tori and meshes"
        raise InputError(expected, field="interference", value=options.interference)
    return state


def _options(time_limit: float | None, seed: int, interference: str = "strict") -> Options:
    if time_limit is not None and not (math.isfinite(time_limit) and time_limit >= 0):
        raise InputError(
            "a finite number of seconds, 0 or more", field="time_limit", value=time_limit
        )
    if not 0 <= seed <= MAX_SEED:
        raise InputError(f"a seed from 0 to {MAX_SEED}", field="seed", value=seed)
    if interference not in list(Interference):
        raise unknown_name(interference, Interference, field="interference")
    return Options(time_limit, Interference(interference), seed)


@contextlib.contextmanager
def _watched(options: Options, display: bool, callback: Watch | None) -> Iterator[Options]:
    """Yield the options of a solve that is shown, told to a callback, or both."""
    with Display() if display else contextlib.nullcontext() as shown:
        watches = [watch for watch in (shown, callback) if watch is not None]

        def watch(progress: Progress) -> None:
            for each in watches:
                each(progress)

        yield replace(options, watch=watch) if watches else options


def _model_of(instance: Instance) -> Model:
    if isinstance(instance, Snapshot):
        instance = Model.of(instance)
    found = instance if isinstance(instance, Model) else load(instance)
    if not isinstance(found, Model):
        raise InputError("a snapshot", field="instance", found=f"a {type(found).__name__}")
    return found


def _application_of(
    path: File, *, results: bool = False
) -> GraphApplication | MappingInstance | ObjectsApplication | ObjectsInstance:
    """Return what a file says of an application; the instance of a result only if asked to."""
    if not results and (str(path) in application_names() or _is_application(path)):
        return read_application(path)
    from topoplace.mapping.graphfiles import read_graph  # noqa: PLC0415 - heavy

    if Path(path).suffix != ".json":
        return read_graph(path)
    found = load(path)
    if results and isinstance(found, MappingResult):
        return found.instance
    if not isinstance(found, MappingInstance if results else MappingInstance | ObjectsInstance):
        raise InputError("a graph or a mapping instance", file=str(path))
    return found


def _is_application(path: File) -> bool:
    """Tell whether a file is an application of objects."""
    if Path(path).suffix != ".json" or not Path(path).is_file():
        return False
    return parse_object(read_bytes(path), str(path)).get("schema") == APPLICATION_SCHEMA
