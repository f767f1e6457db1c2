"""Methods that choose among others, or run another program."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from topoplace import clock
from topoplace.errors import InputError
from topoplace.machine import LevelMachine, Network, Torus
from topoplace.mapping.bounds.recognised import grid_problem, recognised_bound
from topoplace.mapping.bounds.total import total_bound
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.exact.branch import (
    Branched,
    SmallProblem,
    branch_and_bound,
    proof_tree,
    small_problem,
)
from topoplace.mapping.exact.embedding import find_embedding
from topoplace.mapping.graph import TaskGraph
from topoplace.mapping.local_search import improve
from topoplace.mapping.mapped import Keeper, Mapped, cheapest, mapped_by, outcome_of
from topoplace.mapping.methods.orders import map_default
from topoplace.mapping.objects.exact import enumerated, is_few
from topoplace.mapping.objects.search import search_loaded
from topoplace.mapping.positions import compact_routers, symmetric
from topoplace.mapping.problem import MappingProblem, spread_over_nodes
from topoplace.mapping.recognition import Recognition
from topoplace.solving import Bound, Options, Outcome, method_of, register, stronger
from topoplace.types import IntArray

# ---- The static mapper of Scotch, run as the external program ``gmap`` (Pellegrini 1994) ---------

MAPPERS = ("scotch_gmap", "gmap")
"""Debian's name comes first: there, ``gmap`` is a different program."""

TARGET_MAKER = "amk_grf"

MOST_DIMS = 5
"""Dimensions of a torus or mesh that Scotch knows."""

MOST_ROUTERS = 1024
"""Routers for which a table of all distances is given to Scotch."""

LOADS = 1 << 30
"""Scotch computes with 32 bits: the sum of all loads times distances stays below this."""


def is_installed() -> bool:
    """Return whether the programs that `map_scotch` needs are installed."""
    return bool(_mapper() and shutil.which(TARGET_MAKER))


def run_scotch(problem: MappingProblem, time_limit: float | None = None) -> IntArray:
    """Return the router that Scotch gives every task, among a compact set of just enough routers.

    The load imbalance asked for is 0, but routers may get more tasks than they can hold. A machine
    with both rings and lines is described as a torus. Raises `InputError` if the programs are
    missing, Scotch cannot describe the machine, or it fails, and `TimeoutError` if the time limit
    ends it.
    """
    mapper = _mapper()
    if mapper is None or not is_installed():
        expected = "the programs gmap and amk_grf of Scotch, for the method scotch"
        raise InputError(expected, field="method")
    chosen = np.sort(compact_routers(problem)[0])
    if len(chosen) == 1:
        return np.full(problem.num_tasks, chosen[0])
    with tempfile.TemporaryDirectory() as folder:
        graph, target, mapped = (Path(folder) / name for name in ("tasks.grf", "to.tgt", "out.map"))
        graph.write_text(_graph_text(problem.graph, problem.machine.diameter))
        whole = _write_target(problem.machine, chosen, target)
        _run([mapper, str(graph), str(target), str(mapped), "-b0"], time_limit)
        numbers = np.array(mapped.read_text().split()[1:], dtype=np.int64).reshape(-1, 2)
    found = np.empty(problem.num_tasks, dtype=np.int64)
    found[numbers[:, 0]] = numbers[:, 1]
    return found if whole else chosen[found]


def _mapper() -> str | None:
    return next((path for name in MAPPERS if (path := shutil.which(name))), None)


def _run(command: list[str], time_limit: float | None = None) -> None:
    """Run one of Scotch's programs; its complaints become the error."""
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=time_limit
        )
    except subprocess.TimeoutExpired as late:
        raise TimeoutError from late
    if done.returncode:
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise InputError("an instance that Scotch can map", field="method", value=said)


def _graph_text(graph: TaskGraph, diameter: int) -> str:
    """Return the messages in Scotch's graph format, loads scaled to its integers."""
    guest = graph.exchanged
    scale = LOADS // max(1, diameter)
    total = max(1, graph.total_bytes)
    loads = [max(1, weight * min(scale, total) // total) for weight in guest.weight.tolist()]
    pairs = [f"{load} {other}" for load, other in zip(loads, guest.other.tolist(), strict=True)]
    return _grf([pairs[a:b] for a, b in zip(guest.first[:-1], guest.first[1:], strict=True)])


def _grf(rows: list[list[str]]) -> str:
    """Return a graph file of rows of partners, each a load and a vertex."""
    head = f"0\n{len(rows)} {sum(map(len, rows))}\n0 010\n"
    return head + "".join(f"{len(row)} {' '.join(row)}\n" for row in rows)


def _write_target(machine: Network, chosen: IntArray, path: Path) -> bool:
    """Write the machine; return whether Scotch numbers all its routers, or the chosen ones."""
    leaves = _tleaf(machine, chosen) if isinstance(machine, LevelMachine) else None
    if leaves is not None:
        path.write_text(leaves)
        return True
    if isinstance(machine, Torus) and machine.num_dims <= MOST_DIMS:
        kind = "torusXD" if any(machine.wrap) else "meshXD"
        # Scotch numbers vertices with the first dimension fastest
        text = f"{kind} {machine.num_dims} {' '.join(map(str, machine.shape[::-1]))}\n"
        whole = len(chosen) == machine.num_routers
        if not whole:
            text = f"sub\n{len(chosen)} {' '.join(map(str, chosen.tolist()))}\n{text}"
        path.write_text(text)
        return whole
    if len(chosen) > MOST_ROUTERS:
        expected = (
            f"for Scotch, a torus or mesh of at most {MOST_DIMS} dimensions, or "
            f"{MOST_ROUTERS} routers to use"
        )
        raise InputError(expected, field="machine", value=machine.text)
    distances = np.maximum(1, machine.hops(chosen[:, None], chosen[None, :]))
    links = [
        [f"{away} {s}" for s, away in enumerate(row) if s != r]
        for r, row in enumerate(distances.tolist())
    ]
    graph = path.with_suffix(".machine.grf")
    graph.write_text(_grf(links))
    _run([TARGET_MAKER, str(graph), str(path)])
    return False


def _tleaf(machine: LevelMachine, chosen: IntArray) -> str | None:
    """Return a tree as Scotch knows it, whose leaves are all our nodes in their order.

    None if it is not regular, or numbered differently. A level has its number of children and the
    cost of a link; a path takes two of these links.
    """
    if len(chosen) < machine.num_routers or not (np.diff(machine.domain_of, axis=1) >= 0).all():
        return None
    sizes = []
    for below, above in itertools.pairwise(machine.domain_of):
        first = np.unique(below, return_index=True)[1]
        counts = np.unique(np.bincount(above[first]))
        if len(counts) > 1:
            return None
        sizes.append(int(counts[0]))
    links = [f"{size} {max(1, step)}" for size, step in zip(sizes, machine.steps, strict=True)]
    return f"tleaf {len(sizes)} {' '.join(reversed(links))}\n"


@register("mapping", "scotch")
def map_scotch(problem: MappingProblem, options: Options) -> Outcome:
    """Map with Scotch (`run_scotch`), and move tasks that do not fit to the nearest free routers.

    Raises `InputError` if Scotch is not installed or cannot map the instance.
    """
    options.say("gmap")
    try:
        routers = run_scotch(symmetric(problem), options.time_limit)
    except TimeoutError:
        return outcome_of(None, hit=True)
    return outcome_of(spread_over_nodes(problem, within_capacity(problem, routers)))


def within_capacity(problem: MappingProblem, routers: IntArray) -> IntArray:
    """Return a mapping in which the last tasks of overfull routers are on the nearest free ones."""
    load = np.bincount(routers, minlength=problem.machine.num_routers)
    free = problem.capacity - load
    found = routers.copy()
    for router in np.flatnonzero(free < 0).tolist():
        surplus = np.flatnonzero(routers == router)[free[router] :]
        away = problem.machine.distances_from(router)
        for task in surplus.tolist():
            open_ = np.flatnonzero(free > 0)
            goal = int(open_[away[open_].argmin()])
            found[task] = goal
            free[goal] -= 1
    return found


EMBEDDING_SHARE = 0.25
"""Share of a time limit that is spent on looking for an embedding."""

FIRST_MOVES = 200_000
"""Moves of the local search before branch and bound: a tenth of a second or so."""


@register("mapping", "exact", takes=("tasks", "objects", "moves"))
def map_exact(problem: MappingProblem, options: Options) -> Outcome:
    """Return an embedding, else the outcome of branch and bound, else that of a search.

    Without a time limit, branch and bound runs until the optimum is proven. Objects are enumerated,
    as are tasks of which only some may move.
    """
    loaded = not problem.of_tasks or problem.before is not None
    if loaded or (problem.instance.cap is not None and is_few(problem)):
        return enumerated(problem, options)
    return exact_or_search(problem, options, None)


def exact_or_search(
    problem: MappingProblem, options: Options, branch_seconds: float | None
) -> Outcome:
    """Do as `map_exact`, with a limit for branch and bound where the options have none."""
    stop = clock.deadline(options.time_limit)

    def limited(share: float) -> Options:
        if options.time_limit is None:
            return options
        return replace(options, time_limit=max(1e-3, share * (stop - clock.now())))

    options.say("embedding")
    found = embedded(problem, limited(EMBEDDING_SHARE))
    if found is not None:
        return found
    within = limited(1.0)
    if within.time_limit is None:
        within = replace(within, time_limit=branch_seconds)
    found = solved_by_search(problem, within)
    if found is not None:
        return found
    return method_of("mapping", "search").solver(problem, limited(1.0))


def embedded(problem: MappingProblem, options: Options) -> Outcome | None:
    """Return a mapping with every message over one link, which is optimal.

    None if there is none, none was found, or it would prove nothing because routers take more
    than one task.
    """
    bound = total_bound(problem)
    if bound is None:
        return None
    routers = find_embedding(problem, seed=options.seed, time_limit=options.time_limit)
    if routers is None:
        return None
    return outcome_of(spread_over_nodes(problem, routers), bound=bound)


def solved_by_search(problem: MappingProblem, options: Options) -> Outcome | None:
    """Return the result of branch and bound, open or not; None if the problem is too large.

    If it is complete, a tree of partial mappings follows that proves the same to the checker, if
    there is time for one.
    """
    deadline = clock.deadline(options.time_limit)
    small = small_problem(problem)
    if small is None:
        return None
    nodes = _first_mapping(problem, options)
    options.report(Mapped(nodes), [hop_bytes(problem, nodes)])

    def watch(found: Branched) -> None:
        options.say("branch and bound")
        improved = _nodes_of(problem, small, found, nodes)
        options.report(Mapped(improved), [hop_bytes(problem, improved)], [Bound(found.bound)])

    left = max(0.0, deadline - clock.now())
    found = branch_and_bound(small, hop_bytes(problem, nodes), left, watch)
    improved = _nodes_of(problem, small, found, nodes)
    bound = Bound(found.bound)
    if found.complete:
        options.say("proof")
        left = max(0.0, deadline - clock.now())
        options.report(Mapped(improved), [found.bound], [bound])
        bound = Bound(found.bound, proof_tree(small, found.bound, left))
    return outcome_of(improved, hit=not found.complete, bound=bound)


def _first_mapping(problem: MappingProblem, options: Options) -> IntArray:
    """Return a good mapping: the search then looks only for better ones."""
    start = options.start
    if start is None:
        start = mapped_by(map_default, problem, options)
    keeper = Keeper(problem, Options(seed=options.seed), start)
    with contextlib.suppress(InputError):  # the local search takes only symmetric distances
        improve(keeper, FIRST_MOVES)
    return keeper.nodes


def _nodes_of(
    problem: MappingProblem, small: SmallProblem, found: Branched, otherwise: IntArray
) -> IntArray:
    """Return the node of every task, silent ones on free places."""
    if found.at is None:
        return otherwise
    routers = np.full(problem.num_tasks, -1, dtype=np.int64)
    routers[small.tasks] = small.routers[found.at]
    silent = np.flatnonzero(routers < 0)
    load = np.bincount(routers[small.tasks], minlength=problem.machine.num_routers)
    room = np.minimum(problem.capacity - load, len(silent))
    routers[silent] = np.repeat(np.arange(len(room)), room)[: len(silent)]
    return spread_over_nodes(problem, routers)


STRUCTURED = ("pencils", "blocks", "fold-2d")
"""Constructions that use the shape of a grid; each refuses problems that it cannot map."""

SPLIT = "split-axes"
"""Another one, whose mapping a search often betters."""

BRANCH_SECONDS = 20.0
"""Most time for branch and bound if the options set none."""


STRUCTURED_SHARE = 0.3
"""Share of a time limit for the structured methods on a grid that was recognised in a graph."""


@register("mapping", "auto", takes=("tasks", "objects", "moves"))
def auto(problem: MappingProblem, options: Options) -> Outcome:
    """Return the best mapping of the structured methods, or do as `exact`.

    Objects that are more than tasks are annealed, and so is what moves from a mapping before.
    Ties go to the earlier method, so that a pencil placement keeps its statement of optimality. A
    graph that is recognised as a grid is mapped as one, and then as in `exact` from there.
    """
    if problem.before is not None:
        return enumerated(problem, options)
    if not problem.of_tasks:
        return search_loaded(problem, options)
    if problem.grid is None:
        return _of_graph(problem, options)
    stop = clock.deadline(options.time_limit)
    built = cheapest(problem, options, STRUCTURED)
    split = cheapest(problem, options, [SPLIT])
    starts = [_nodes(built), options.start, _nodes(split)]
    found = [(hop_bytes(problem, nodes), nodes) for nodes in starts if nodes is not None]
    start = min(found, key=lambda each: each[0], default=(0, None))[1]
    if built is not None and start is _nodes(built):
        return built
    left = None if options.time_limit is None else max(1e-3, stop - clock.now())
    return exact_or_search(problem, replace(options, time_limit=left, start=start), BRANCH_SECONDS)


def _nodes(outcome: Outcome | None) -> IntArray | None:
    """Return the mapping of an outcome, None without one."""
    return None if outcome is None or outcome.solution is None else outcome.solution.nodes


def _of_graph(problem: MappingProblem, options: Options) -> Outcome:
    """Map a graph as a grid, if it is one, and as a graph; return the better, and why."""
    stop = clock.deadline(options.time_limit)
    options.say("recognition")
    found = problem.recognised
    assert found is not None, "only grids have nothing to recognise"
    start = _as_grid(problem, found, options)
    if start is None:
        why = found.text if found.application is None else f"{found.text}; grid methods refuse it"
        outcome = exact_or_search(problem, options, BRANCH_SECONDS)
        return replace(outcome, notes=(f"recognised: {why}; mapped as a graph",))
    name, nodes = start
    value = hop_bytes(problem, nodes)
    options.report(Mapped(nodes), [value])
    because = f"recognised: {found.text}; mapped as a grid by {name}"
    bound = stronger(total_bound(problem), recognised_bound(problem))
    if bound is not None and bound.value >= value:
        return replace(outcome_of(nodes), bounds=(bound,), notes=(because,))
    left = None if options.time_limit is None else max(1e-3, stop - clock.now())
    if options.start is not None and hop_bytes(problem, options.start) < value:
        nodes = options.start
    searched = replace(options, start=nodes, time_limit=left)
    outcome = exact_or_search(problem, searched, BRANCH_SECONDS)
    mapped = outcome.solution or Mapped(nodes)
    better = hop_bytes(problem, mapped.nodes) < value
    told = "a search from there found a better one" if better else "a search found no better one"
    notes = (f"{because}, {value:,} hop-bytes; {told}",)
    return replace(outcome, solution=mapped, notes=notes)


def _as_grid(
    problem: MappingProblem, found: Recognition, options: Options
) -> tuple[str, IntArray] | None:
    """Return the best structured method for a recognised grid, and its mapping of the graph."""
    if found.application is None:
        return None
    grid = grid_problem(problem, found.application)
    if grid is None:
        return None
    share = options.time_limit and STRUCTURED_SHARE * options.time_limit / len(STRUCTURED)
    alone = replace(options, time_limit=share, start=None, incumbent=None)
    best: tuple[int, str, IntArray] | None = None
    for name in STRUCTURED:
        options.say(name)
        outcome = cheapest(grid, alone, [name])
        if outcome is None or outcome.solution is None:
            continue
        nodes = _through(problem, found.tasks, outcome.solution.nodes)
        value = hop_bytes(problem, nodes)
        if best is None or value < best[0]:
            best = value, name, nodes
    return best and best[1:]


def _through(problem: MappingProblem, tasks: IntArray, nodes: IntArray) -> IntArray:
    """Return a mapping with these tasks on their nodes, and the others on free places."""
    found = np.full(problem.num_tasks, -1, dtype=np.int64)
    found[tasks] = nodes
    silent = np.flatnonzero(found < 0)
    load = np.bincount(nodes, minlength=int(problem.nodes.max()) + 1)[problem.nodes]
    places = np.repeat(problem.nodes, problem.tasks_per_node - load)
    found[silent] = places[: len(silent)]
    return found
