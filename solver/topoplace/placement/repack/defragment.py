"""The most room for few moves: the best plans, and the proof (docs/proofs/placement.md, "Room")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from topoplace.machine import format_node_set
from topoplace.packing.budget import Budget
from topoplace.packing.frontier import MOST_TRIES, SHARE, Corner, Point, Step, TradeOff, trade_off
from topoplace.packing.search import Found, LevelBound, Search
from topoplace.packing.state import Say, silent
from topoplace.placement.repack.packing import RepackPacking
from topoplace.placement.repack.problem import GOES, RepackProblem, Seat
from topoplace.placement.several import frontier_of
from topoplace.placement.torus.moves import TorusMoves
from topoplace.placement.torus.outcome import prism_model
from topoplace.placement.torus.places import largest_prism
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result.certificate import Leaf
from topoplace.result.several import Frontier
from topoplace.snapshot.schema import DefragmentInstance, RepackInstance, Room
from topoplace.snapshot.state import prepare
from topoplace.solving import Options

PLACED, MOVES, ROOM = range(3)
TRADED = (MOVES, ROOM)


def defragmented(problem: RepackProblem, options: Options | None = None) -> Frontier:
    """Return the moves that make the most room, for every cost up to the limit, and the proof."""
    asked = problem.instance
    assert isinstance(asked, DefragmentInstance), "the problem of making room"
    least = {PLACED: problem.num_movers, MOVES: -asked.most}

    def for_queue(own: Any, budget: Budget, **how: Any) -> TradeOff:
        seed, within = how["seed"], budget.within(SHARE * budget.length)
        queue = asked.room is Room.QUEUE
        begun = problem.site.begun(problem.instance.snapshot, within, seed) if queue else []
        start = [*problem.stays, *begun]
        return trade_off(own.packing, TRADED, budget, least=least, start=start, **how)

    def for_prism(own: Any, budget: Budget, **how: Any) -> TradeOff:
        return largest_prisms(problem, budget, least, **how)

    search = for_prism if asked.room is Room.PRISM else for_queue
    return frontier_of(problem, options or Options(), TradeOff(TRADED, least), search)


def largest_prisms(
    problem: RepackProblem,
    budget: Budget,
    least: dict[int, int],
    *,
    seed: int = 0,
    report: Callable[[TradeOff], None] = lambda found: None,
    progress: Callable[[Found], None] = lambda found: None,
    say: Say = silent,
) -> TradeOff:
    """Return the largest free prisms by the cost of moves; see `trade_off`.

    There is always a known plan, at first the one without moves. The largest prism that it leaves
    is a point. A search for a prism with one more node finds the next plan, and proves which moves
    that takes: a step. If the first searches leave something open, longer ones try again.
    """
    everybody, most = least[PLACED], _class_size(problem)
    asked = problem.instance
    assert isinstance(asked, DefragmentInstance)
    nothing = Leaf(scale=1, prices={}, multipliers=[0])
    known = TradeOff(TRADED, least)
    known.prove(Step((everybody,), LevelBound(0, nothing)))  # staying costs nothing
    known.prove(Step((everybody, None), LevelBound(most, nothing)))
    _add(known, problem, [*problem.stays])
    tries: Counter[Corner] = Counter()
    while not budget.is_over():
        report(known)
        corners = [corner for corner, _ in known.boxes() if tries[corner] < MOST_TRIES]
        if not corners:
            break
        corner = min(corners, key=lambda c: (tries[c], c[1]))
        tries[corner] += 1
        floor, nodes = int(corner[0]), int(corner[1])
        share = budget.within(tries[corner] * SHARE * (budget.end - budget.now()))
        larger = replace(problem, instance=_as_repack(asked), site=_site(problem).of_size(nodes))
        packing = RepackPacking(larger)
        found = Search(
            packing, share, seed=seed, num_levels=2, to_beat={MOVES: floor - 1},
            say=lambda phase, level, bound: say(phase, ROOM, None),
        ).run()  # fmt: skip
        step = _proven(packing, found, nodes - 1, everybody)
        if step is not None:
            known.prove(step)
        if larger.started(found.placement) and found.values[MOVES] >= floor:
            _add(known, problem, larger.settled(found.placement))
    return known


def _site(problem: RepackProblem) -> TorusMoves:
    assert isinstance(problem.site, TorusMoves), "prisms are of tori"
    return problem.site


def _as_repack(asked: DefragmentInstance) -> RepackInstance:
    """Return the instance in which one job has to start, for which room is made."""
    shared = {name: getattr(asked, name) for name in ("name", "fixed", "costs", "keep_shape")}
    return RepackInstance(**shared, snapshot=asked.wanting(1), start=[asked.room_id])


def _class_size(problem: RepackProblem) -> int:
    """Return the number of nodes of the class for which the largest prism is sought."""
    emptied = _site(problem).emptied
    room = emptied.requests[problem.num_movers]
    return int((emptied.state.node_class == room.class_idx).sum())


def _add(known: TradeOff, problem: RepackProblem, seats: list[Seat]) -> None:
    """Add the largest prism that running jobs leave on some seats."""
    stay = [seat for seat in seats if seat.request_idx < problem.num_movers]
    nodes, prism = largest_prism(_after(problem, stay), 0)
    room = [] if prism is None else [Seat(problem.num_movers, GOES, prism)]
    cost = problem.worth(stay)[MOVES]
    known.add(Point((known.least[PLACED], -cost, nodes), [*stay, *room]))


def _proven(packing: RepackPacking, found: Found, nodes: int, everybody: int) -> Step | None:
    """Return the bound that a search proves on plans with room for more nodes."""
    started, moves = [*found.bounds, None, None][:2]
    reached = [packing.reported(0, value) for value in found.reached[:1] if value is not None]
    if started is not None and not packing.reported(0, started.value):
        return Step((everybody, None), LevelBound(nodes, started.certificate))
    if moves is None or moves.value >= 0 or reached != [1]:
        return None
    return Step((everybody, moves.value + 1), LevelBound(nodes, moves.certificate))


def _after(problem: RepackProblem, seats: list[Seat]) -> PlacementProblem:
    """Return the machine after moves, with the job that the space is for as its queue."""
    site = _site(problem)
    places = {
        site.names[seat.request_idx]: {
            "nodes": format_node_set(site.nodes_of(seat.request_idx, seat.place).tolist()),
            "prism": prism_model(seat.place),
        }
        for seat in problem.changed(seats, GOES)
    }
    [room] = site.emptied.requests[problem.num_movers :]
    snapshot = problem.instance.snapshot
    running = [job.model_copy(update=places.get(job.id, {})) for job in snapshot.running]
    state = prepare(snapshot.model_copy(update={"running": running, "queue": []}))
    return PlacementProblem(replace(state, queue=(room,)), problem.interference)
