"""Ways to spoil a correct mapping result, each certainly wrong, beyond single fields.

`test_checked_fields` gives every field of a result other values; here are faults that fit together,
or that have a reason of their own to be refused. Each is listed with the cases it applies to, the
claims that may be the first to fail, and an edit.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from edits import Edit, add, again, append, change, copied, cut, empty, put, swap, with_list
from edits import one_after_the_other as both
from mapping_results import CASES, Document

ALL = tuple(CASES)
ROUGH = ("rough", "alone", "graph", "folded")
RIGHT = ("blocks", "pencils", "ring")
LAYOUTS = ("pencils", "ring", "folded", "whole")
FLOWS = ("pencils", "ring", "folded")
BLOCKS = ("blocks", "rough", "pencils", "ring", "folded")

LEVEL = "levels/0"
LAYOUT, OPTIMUM = "solution/layout", "solution/optimum"
FLOW, CERTIFICATE = f"{OPTIMUM}/flow", f"{LEVEL}/certificate"
FAMILY = f"{CERTIFICATE}/families/0"


@dataclass(frozen=True)
class Mutation:
    """A change, the cases it applies to, and the claims that may be the first to fail."""

    change: Edit
    cases: tuple[str, ...]
    caught_as: tuple[str, ...]


def refigure(document: Document, _: random.Random) -> None:
    """Make gap, status and the top figures fit objective and bound again."""
    level = document["levels"][0]
    objective, bound = level["objective"], level["bound"]
    level["gap"] = (objective - bound) / max(1, objective)
    level["status"] = "optimal" if objective == bound else "feasible"
    for field in ("status", "objective", "bound", "gap", "proof"):
        document[field] = level[field]


def both_put(field: str, value: Any) -> Edit:
    """Put the same into the level and the top."""
    return both(put(f"{LEVEL}/{field}", value), put(field, value))


def outside_the_set(document: Document, _: random.Random) -> None:
    usable: set[int] = set()
    for part in document["instance"]["nodes"].split(","):
        first, _, last = part.partition("-")
        usable.update(range(int(first), int(last or first) + 1))
    document["solution"]["nodes"][0] = min(set(range(max(usable))) - usable)


def family_widened(document: Document, _: random.Random) -> None:
    shape = document["instance"]["machine"]["shape"]
    family = document["levels"][0]["certificate"]["families"][0]
    family["extents"] = [max(1, n // 2) if n > 2 else n for n in shape]


def flow_arc_dropped(document: Document, _: random.Random) -> None:
    flow = document["solution"]["optimum"]["flow"]
    at = next(k for k, amount in enumerate(flow["flows"]) if amount)
    for numbers in flow.values():
        numbers.pop(at)


def flow_arc_reversed(document: Document, _: random.Random) -> None:
    flow = document["solution"]["optimum"]["flow"]
    at = flow["tails"].index(-1)
    flow["tails"][at], flow["heads"][at] = flow["heads"][at], -1


def arc_added(tail: int, head: int, amount: int) -> Edit:
    """Add an arc to the flow."""
    ends = both(append(f"{FLOW}/tails", tail), append(f"{FLOW}/heads", head))
    return both(ends, append(f"{FLOW}/flows", amount))


def multiplied(field: str, numerator: int, denominator: int, more: int = 0) -> Edit:
    """Multiply an exact rational of the first family, and make its numerator a bit larger."""
    return both(
        change(f"{FAMILY}/{field}/numerator", lambda x: numerator * x + more),
        change(f"{FAMILY}/{field}/denominator", lambda x: denominator * x),
    )


def every(path: str, function: Any) -> Edit:
    return change(path, lambda values: [function(x) for x in values])


BOUND, HOPS = "hop-bytes.bound", "hop-bytes"
_TABLE: dict[str, tuple[tuple[str, ...], str, Edit]] = {
    # name: cases, claims, edit
    "task_left_out": (ALL, "solution", cut("solution/nodes")),
    "task_outside_the_set": (("rough", "alone", "pencils"), "solution", outside_the_set),
    "task_beyond_the_machine": (ALL, "solution", put("solution/nodes/0", 1 << 60)),
    "task_on_a_full_node": (
        ("blocks", "alone", "graph"),
        "solution",
        change(
            "solution/nodes", lambda nodes: [next(n for n in nodes if n != nodes[0]), *nodes[1:]]
        ),
    ),
    "tasks_swapped": ((*ROUGH, "whole"), "figures layout", swap("solution/nodes", 0, -1)),
    "histogram_padded": (ALL, "figures", append("solution/figures/histogram", 0)),
    # the level
    "objective_lowered": (ALL, HOPS, both(add(f"{LEVEL}/objective", -1), refigure)),
    "bound_raised_by_one": (ROUGH, BOUND, both(add(f"{LEVEL}/bound", 1), refigure)),
    "bound_above_the_objective": (
        RIGHT,
        f"{HOPS} {BOUND}",
        both(copied(f"{LEVEL}/bound", f"{LEVEL}/objective"), add(f"{LEVEL}/bound", 1), refigure),
    ),
    "status_of_a_failure": (ALL, HOPS, both_put("status", "infeasible")),
    "proof_withheld": (ALL, HOPS, both_put("proof", "none")),
    "proof_called_a_search": (ALL, BOUND, both_put("proof", "search")),
    "certificate_dropped": (ALL, HOPS, put(CERTIFICATE, None)),
    "level_doubled": (ALL, "levels", again("levels")),
    "level_removed": (ALL, "levels", empty("levels")),
    # the instance
    "capacity_raised": (
        ("rough", "pencils", "folded"),
        f"{BOUND} layout optimum figures",
        change("instance/tasks_per_node", lambda n: 4 * n),
    ),
    "nodes_taken_away": (
        ALL,
        "instance solution",
        both(copied("instance/nodes", "solution/nodes/0"), change("instance/nodes", str)),
    ),
    "message_beyond_the_tasks": (("graph",), "instance", put("instance/application/sources/0", 99)),
    "periodic_shortened": (("rough", "ring"), "instance", cut("instance/application/periodic")),
    "mesh_closed": (("rough",), "figures", every("instance/machine/wrap", lambda _: True)),
    # blocks
    "total_claimed_where_routers_share": (RIGHT, BOUND, put(CERTIFICATE, {"kind": "total"})),
    "blocks_claimed_of_a_graph": (
        ("graph",),
        BOUND,
        put(CERTIFICATE, {"kind": "blocks", "families": []}),
    ),
    "multiplier_raised": (BLOCKS, BOUND, multiplied("multiplier", 1000, 1000, 1)),
    "multiplier_negative": (BLOCKS, BOUND, multiplied("multiplier", -1, 1)),
    "slope_dropped": (("rough", "pencils", "folded"), BOUND, multiplied("slope", 0, 1)),
    "family_widened": (BLOCKS, BOUND, family_widened),
    "family_beyond_the_machine": (BLOCKS, BOUND, put(f"{FAMILY}/extents/0", 99)),
    "family_of_fewer_dimensions": (BLOCKS, BOUND, cut(f"{FAMILY}/extents")),
    "single_cuts_of_a_ring": (("blocks", "ring"), BOUND, put(f"{FAMILY}/extents/-1", 0)),
    "family_doubled": (BLOCKS, BOUND, again(f"{CERTIFICATE}/families")),
    # layouts
    "window_outside_the_machine": (LAYOUTS, "layout", put(f"{LAYOUT}/origin/0", 99)),
    "window_too_deep": (LAYOUTS, "layout", put(f"{LAYOUT}/depth", 99)),
    "pencils_along_nothing": (LAYOUTS, "layout", put(f"{LAYOUT}/pencil", 7)),
    "axes_swapped": (("pencils", "ring", "whole"), "layout", swap(f"{LAYOUT}/axes", 0, 2)),
    "axis_doubled": (LAYOUTS, "layout", copied(f"{LAYOUT}/axes/0", f"{LAYOUT}/axes/2")),
    "list_shortened": (LAYOUTS, "layout", cut(f"{LAYOUT}/partitions")),
    "folds_forgotten": (("folded",), "layout", put(f"{LAYOUT}/folds", [])),
    "layers_reversed": (("folded",), "layout", with_list(f"{LAYOUT}/layer_order", list.reverse)),
    "layout_dropped": (LAYOUTS, "optimum", put(LAYOUT, None)),
    # the optimum among pencil placements
    "class_objective_lowered": (
        LAYOUTS,
        "optimum",
        both(add(f"{OPTIMUM}/objective", -1), add(f"{OPTIMUM}/bound", -1)),
    ),
    "window_bound_below_the_class_bound": (
        FLOWS,
        "optimum",
        both(
            copied(f"{OPTIMUM}/window_bound", f"{OPTIMUM}/bound"),
            add(f"{OPTIMUM}/window_bound", -1),
        ),
    ),
    "flow_missing": (FLOWS, "optimum", put(FLOW, None)),
    "flow_doubled": (FLOWS, "optimum", every(f"{FLOW}/flows", lambda x: 2 * x)),
    "flow_halved": (FLOWS, "optimum", every(f"{FLOW}/flows", lambda x: x // 2)),
    "flow_arc_dropped": (FLOWS, "optimum", flow_arc_dropped),
    "flow_arc_short_cut": (FLOWS, "optimum", arc_added(-1, -2, 1)),
    "flow_arc_back": (FLOWS, "optimum", arc_added(-2, -1, -1)),
    "flow_arc_reversed": (FLOWS, "optimum", flow_arc_reversed),
    "flow_of_unknown_vertex": (FLOWS, "optimum", put(f"{FLOW}/heads/0", 1 << 40)),
    "flow_too_large_to_add": (FLOWS, "optimum", put(f"{FLOW}/flows/0", 1 << 70)),
    "flow_lists_uneven": (FLOWS, "optimum", cut(f"{FLOW}/heads")),
    # certificates of graphs: numbers and lists that the proof could not do without
    **{
        f"{case}: {place} {name}": ((case,), BOUND, edit(f"{CERTIFICATE}/{place}"))
        for case, place, name, edit in [
            ("star", "prices", "dropped", empty),
            ("star", "prices", "shortened", cut),
            ("star", "prices/3", "huge", lambda place: put(place, 1 << 70)),
            ("classes", "scale", "doubled", lambda place: change(place, lambda x: 2 * x)),
            ("classes", "scale", "halved", lambda place: change(place, lambda x: x // 2)),
            ("classes", "shape", "huge", lambda place: put(place, [1 << 20, 1 << 20])),
            ("classes", "shape", "of another host", lambda place: put(place, [16])),
            ("classes", "routers/0", "taken twice", lambda place: put(place, 5)),
            ("classes", "routers/0", "outside", lambda place: put(place, 16)),
            ("classes", "routers", "shortened", cut),
            ("classes", "classes/1", "without opposite", lambda place: put(place, 2)),
            ("classes", "classes", "with a gap", lambda place: every(place, lambda d: d + (d > 1))),
            ("classes", "classes/0", "not the first", lambda place: put(place, 1)),
            ("classes", "classes/10", "a second first", lambda place: put(place, 0)),
            ("classes", "classes/10", "huge", lambda place: put(place, 1 << 60)),
            ("classes", "filters/0/2", "raised", lambda place: add(place, 1)),
            ("classes", "filters/0", "shortened", cut),
            ("classes", "filters", "dropped", empty),
            ("classes", "filters", "reversed", lambda place: with_list(place, list.reverse)),
            ("classes", "factors/-1/-1", "shortened", cut),
            ("classes", "factors/-1/-1/0", "huge", lambda place: add(place, 1 << 80)),
            ("classes", "rows", "shortened", cut),
            ("classes", "rows/1", "shortened", cut),
            ("classes", "rows/1/0", "raised", lambda place: add(place, 1 << 70)),
            ("lines", "lines/0/prices", "lowered", lambda p: every(p, lambda x: x - (1 << 40))),
            ("factors", "lines/0/prices", "raised", lambda p: every(p, lambda x: x + (1 << 44))),
            ("lines", "lines/0/prices", "shortened", cut),
            ("lines", "lines/0/prices/0", "huge", lambda place: put(place, 1 << 70)),
            ("lines", "lines/0/balance", "huge", lambda place: put(place, 1 << 70)),
            ("lines", "lines/0/balance", "dropped", lambda place: put(place, 0)),
            ("lines", "scale", "doubled", lambda place: change(place, lambda x: 2 * x)),
            ("lines", "scale", "huge", lambda place: change(place, lambda x: x << 20)),
            ("lines", "wrap", "shortened", cut),
            ("factors", "wrap/1", "opened", lambda place: put(place, False)),
            ("factors", "factors", "shortened", cut),
            ("factors", "factors/0", "shortened", cut),
            ("factors", "factors/0/0", "not adding up to 0", lambda place: add(place, 1)),
            ("factors", "factors/0", "huge", lambda p: put(p, [1 << 40, -(1 << 40), *[0] * 34])),
            ("factors", "gains", "dropped", empty),
            ("factors", "gains", "lowered", lambda p: every(p, lambda x: x * 99 // 100)),
            ("factors", "gains", "raised", lambda p: every(p, lambda x: x * 11 // 10)),
            ("factors", "gains/0", "huge", lambda place: put(place, 1 << 60)),
        ]
    },
}
MUTATIONS = {
    name: Mutation(edit, cases, tuple(claims.split()))
    for name, (cases, claims, edit) in _TABLE.items()
}
