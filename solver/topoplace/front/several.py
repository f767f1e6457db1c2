"""Trade levels off, find all optima, and move jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topoplace.front.arguments import names_of, options_of, watched
from topoplace.front.documents import Instance
from topoplace.front.placing import prepared
from topoplace.kernels import compile_for
from topoplace.placement.several import optima_of, traded_off
from topoplace.placement.torus.repack import asked
from topoplace.placement.torus.repack.defragment import defragmented
from topoplace.placement.torus.repack.problem import repack_problem
from topoplace.result.repack import RepackResult
from topoplace.result.several import Frontier, Optima
from topoplace.solving import Options, solve
from topoplace.solving.outcome import Watch
from topoplace.solving.solve import tree_objective


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
    options = options_of(time_limit, seed, interference)
    state = prepared(instance, contract, ignore, options, tree_objective(objective))
    compile_for(state.kind, ["exact"])
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
    options = options_of(time_limit, seed, interference)
    state = prepared(instance, contract, ignore, options, tree_objective(objective))
    compile_for(state.kind, ["exact"])
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
    options = options_of(time_limit, seed, interference)
    snapshot = prepared(instance, None, ignore, Options()).snapshot
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
