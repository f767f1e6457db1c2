"""Ways to spoil a correct mapping result, each certainly wrong, beyond single fields.

`test_checked_fields` gives every field of a result other values; here are faults that fit together,
or that have a reason of their own to be refused. Each is listed with the cases it applies to, the
claims that may be the first to fail, and an edit.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from edits import Edit, add, again, append, change, copied, empty, put, swap, with_list
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
    "task_outside_the_set": (("rough", "alone", "pencils"), "solution", outside_the_set),
    "task_on_a_full_node": (
        ("blocks", "alone", "graph"),
        "solution",
        change(
            "solution/nodes", lambda nodes: [next(n for n in nodes if n != nodes[0]), *nodes[1:]]
        ),
    ),
    "tasks_swapped": ((*ROUGH, "whole"), "figures layout", swap("solution/nodes", 0, -1)),
    # the level
    "objective_lowered": (ALL, HOPS, both(add(f"{LEVEL}/objective", -1), refigure)),
    "bound_raised_by_one": (ROUGH, BOUND, both(add(f"{LEVEL}/bound", 1), refigure)),
    "bound_above_the_objective": (
        RIGHT,
        f"{HOPS} {BOUND}",
        both(copied(f"{LEVEL}/bound", f"{LEVEL}/objective"), add(f"{LEVEL}/bound", 1), refigure),
    ),
    "proof_called_a_search": (ALL, BOUND, both_put("proof", "search")),
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
    # blocks
    "total_claimed_where_routers_share": (RIGHT, BOUND, put(CERTIFICATE, {"kind": "total"})),
    "blocks_claimed_of_a_graph": (
        ("graph",),
        BOUND,
        put(CERTIFICATE, {"kind": "blocks", "families": []}),
    ),
    "multiplier_raised": (BLOCKS, BOUND, multiplied("multiplier", 1000, 1000, 1)),
    "slope_dropped": (("rough", "pencils", "folded"), BOUND, multiplied("slope", 0, 1)),
    "family_widened": (BLOCKS, BOUND, family_widened),
    "single_cuts_of_a_ring": (("blocks", "ring"), BOUND, put(f"{FAMILY}/extents/-1", 0)),
    "family_doubled": (BLOCKS, BOUND, again(f"{CERTIFICATE}/families")),
    # layouts
    "axes_swapped": (("pencils", "ring", "whole"), "layout", swap(f"{LAYOUT}/axes", 0, 2)),
    "layers_reversed": (("folded",), "layout", with_list(f"{LAYOUT}/layer_order", list.reverse)),
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
    "flow_doubled": (FLOWS, "optimum", every(f"{FLOW}/flows", lambda x: 2 * x)),
    "flow_halved": (FLOWS, "optimum", every(f"{FLOW}/flows", lambda x: x // 2)),
    "flow_arc_dropped": (FLOWS, "optimum", flow_arc_dropped),
    "flow_arc_short_cut": (FLOWS, "optimum", arc_added(-1, -2, 1)),
    "flow_arc_back": (FLOWS, "optimum", arc_added(-2, -1, -1)),
    "flow_arc_reversed": (FLOWS, "optimum", flow_arc_reversed),
}
MUTATIONS = {
    name: Mutation(edit, cases, tuple(claims.split()))
    for name, (cases, claims, edit) in _TABLE.items()
}
