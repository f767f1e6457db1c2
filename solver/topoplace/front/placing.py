"""Place queues, trade levels off, find all optima, move jobs, and ask what if."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topoplace.errors import InputError
from topoplace.front.arguments import names_of, options_of, watched
from topoplace.front.documents import Instance, model_of
from topoplace.kernels import compile_for
from topoplace.result import Interference, PlacementResult
from topoplace.result.cubes import CubesResult
from topoplace.result.hierarchy import HierarchyResult
from topoplace.result.repack import RepackResult
from topoplace.result.several import Frontier, Optima
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.held import ignoring
from topoplace.snapshot.machines import AnyState, prepare_any
from topoplace.snapshot.schema import TreeObjective
from topoplace.snapshot.state import SnapshotState
from topoplace.solving import Options, solve
from topoplace.solving.outcome import Watch
from topoplace.solving.solve import maps_in, on_trees, tree_objective
from topoplace.study.what_if import Changes, WhatIf, what_if


def place(
    instance: Instance,
    method: str = "exact",
    *,
    time_limit: float | None = None,
    interference: str = "strict",
    contract: str | None = None,
    ignore: Sequence[str] = (),
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
        A name of ``methods("placement")``, on hierarchies and trees of ``methods("hierarchy")``, by
        contention of ``methods("allocation")``, on pods of cubes of ``methods("cubes")``.
    time_limit
        Seconds; by default some 300 for the method ``exact``, none for others.
    interference
        On tori, which jobs may share links: ``strict`` (none), ``tolerant`` (tolerant ones with
        each other) or ``off`` (all).
    contract
        On hierarchies, what a scheduler promises requests beyond what these say: ``slurm-block``.
    ignore
        Options that are not modelled and hold no request all the same; ``all`` for every one.
    seed
        Of whatever the method draws at random.
    thorough
        Whether ``exact`` spends what is left of the time limit on the later levels too, as it
        always does on trees.
    required
        By level what is required of it instead of its optimum, at least this of levels that are
        maximised, at most of others: ``{"nodes": 6000}``. Of method ``exact``, not by contention.
    objective
        ``nodes,hop-bytes`` on tori: the applications of requests are mapped, and the second level
        is their bytes x hops. On switch trees ``domains``, the fewest switches level by level, or
        ``contention``, the cost of Mishra 2020; by default the latter if a request has patterns.
    display
        Whether to show on stderr where the solve is: one live line at a terminal.
    callback
        Called with the `Progress` of the solve a few times a second, and at its end.

    Raises
    ------
    InputError
        If an argument or a field of the instance cannot be used.
    """
    options = replace(
        options_of(time_limit, seed, interference),
        thorough=thorough,
        required=dict(required or {}),
        maps=maps_in(objective),
    )
    state = _prepared(instance, contract, ignore, options, method, on_trees(objective))
    with watched(options, display, callback) as options:
        return solve(state, method, options)


def frontier(
    instance: Instance,
    levels: Sequence[str] = ("nodes", "shape"),
    *,
    time_limit: float | None = None,
    interference: str = "strict",
    contract: str | None = None,
    objective: str | None = None,
    ignore: Sequence[str] = (),
    seed: int = 0,
    display: bool = False,
    callback: Watch | None = None,
) -> Frontier:
    """Trade levels of placements off: return the best placements, and prove that these are all.

    Parameters
    ----------
    instance
        A `Model`, or whatever `load` takes for one; of a tree by objective `domains`.
    levels
        Two or three levels of the objective; of the others anything will do.
    time_limit
        Seconds; by default some 300. What is open then is told.
    interference, contract, ignore, seed, display, callback
        As of `place`.
    objective
        On switch trees ``domains``; of `contention` there is no such document.

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

    options = options_of(time_limit, seed, interference)
    state = _prepared(instance, contract, ignore, options, objective=tree_objective(objective))
    with watched(options, display, callback) as options:
        return traded_off(state, names_of(levels), options)


def optima(
    instance: Instance,
    most: int = 10,
    *,
    levels: Sequence[str] = (),
    distinct: str | None = None,
    time_limit: float | None = None,
    interference: str = "strict",
    contract: str | None = None,
    objective: str | None = None,
    ignore: Sequence[str] = (),
    seed: int = 0,
    display: bool = False,
    callback: Watch | None = None,
) -> Optima:
    """Find placements that are as good as any other one, and prove that these are all.

    Parameters
    ----------
    instance
        A `Model`, or whatever `load` takes for one; of a tree by objective `domains`.
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
    interference, contract, ignore, seed, display, callback
        As of `place`.
    objective
        On switch trees ``domains``; of `contention` there is no such document.

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

    options = options_of(time_limit, seed, interference)
    state = _prepared(instance, contract, ignore, options, objective=tree_objective(objective))
    with watched(options, display, callback) as options:
        return optima_of(state, most, names_of(levels), distinct, options)


def repack(
    instance: Instance,
    start: Sequence[str] = (),
    *,
    defragment: int | None = None,
    room: str | None = None,
    node_class: str | None = None,
    fixed: Sequence[str] = (),
    costs: Mapping[str, int] | None = None,
    keep_shape: str = "as-good",
    time_limit: float | None = None,
    interference: str = "strict",
    ignore: Sequence[str] = (),
    seed: int = 0,
    display: bool = False,
    callback: Watch | None = None,
) -> RepackResult | Frontier:
    """Find the fewest running jobs to move so that requests start, or that make most room.

    Either way it is proven that no other moves do better.

    Parameters
    ----------
    instance
        A `Model` of a torus or mesh, or whatever `load` takes for one.
    start
        Ids of the requests that have to start.
    defragment
        Instead of these, what moves may cost in all to make room: without `costs`, how many jobs
        may move.
    room
        What there is to be room for: requests of the queue, by nodes times priority (``queue``,
        the default where requests wait), or one job on the largest prism (``prism``).
    node_class
        Of the nodes of that job; by default that of the machine.
    fixed
        Ids of running jobs that stay; those without a prism do anyway.
    costs
        What it costs to move running jobs, by id; 1 by default. Nodes moved come second.
    keep_shape
        Shapes for jobs that move: ``as-good`` (of no less shape score), ``same`` extents, ``any``.
    time_limit, interference, ignore, seed, display, callback
        As of `place`.

    Returns
    -------
    RepackResult, Frontier
        The plan; or, to defragment, a plan for every cost with more room, in `points`. Printed, it
        is the curve and the steps of the last plan; it plots itself, and can be checked.

    Raises
    ------
    InputError
        If an argument or a field of the instance cannot be used.
    """
    from topoplace.placement.torus.repack import asked  # noqa: PLC0415 - heavy
    from topoplace.placement.torus.repack.defragment import defragmented  # noqa: PLC0415 - heavy
    from topoplace.placement.torus.repack.problem import repack_problem  # noqa: PLC0415 - heavy

    options = options_of(time_limit, seed, interference)
    snapshot = prepare_any(ignoring(model_of(instance).snapshot, names_of(ignore))).snapshot
    question = asked.instance_of(
        snapshot, names_of(start), defragment, room, node_class,
        fixed=names_of(fixed), costs=costs, keep_shape=keep_shape,
    )  # fmt: skip
    problem = repack_problem(question, options.interference)
    compile_for("repack", ["exact"])
    with watched(options, display, callback) as options:
        if defragment is None:
            return solve(problem, "exact", options)
        return defragmented(problem, options)


def whatif(
    instance: Instance,
    changes: Sequence[Changes],
    method: str = "exact",
    *,
    worth: bool = False,
    time_limit: float | None = None,
    interference: str = "strict",
    objective: str | None = None,
    ignore: Sequence[str] = (),
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
        Whether to say for each running job what its release can gain at most, and on tori and
        meshes between what figures the first level is if a router goes down, or is freed.
    time_limit, interference, ignore, seed, display, callback
        As of `place`, for each solve; the rule is that of scenarios that do not change it.
    objective
        What counts on switch trees, as of `place`.

    Returns
    -------
    WhatIf
        Its `scenarios`, the base first, each with its `result`; `worth` and `routers`. Printed, it
        is tables.

    Raises
    ------
    InputError
        If an argument, a change or a field of the instance cannot be used.
    """
    options = options_of(time_limit, seed, interference)
    state = _prepared(instance, None, ignore, options, method, tree_objective(objective))
    with watched(options, display, callback) as options:
        return what_if(state, changes, method, options, worth=worth)


def _prepared(
    instance: Instance,
    contract: str | None,
    ignore: Sequence[str],
    options: Options,
    method: str = "exact",
    objective: TreeObjective | None = None,
) -> AnyState:
    """Return an instance ready to be placed, under a contract and with a rule that fit it.

    The kernels of the method are compiled then.
    """
    snapshot = ignoring(model_of(instance, objective).snapshot, names_of(ignore))
    state = prepare_any(snapshot, objective)
    if contract is not None:
        from topoplace.placement.hierarchy.contract import prepared_under  # noqa: PLC0415 - rare

        state = prepared_under(state.snapshot, contract)
    if not isinstance(state, SnapshotState) and options.interference is not Interference.STRICT:
        expected = "strict, but on tori and meshes"
        raise InputError(expected, field="interference", value=options.interference)
    compile_for(state.kind, [method])
    return state
