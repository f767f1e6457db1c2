"""Ways to spoil a correct mapping result, each certainly wrong.

Each is listed with the cases it applies to, the claims that may be the first to fail, and an edit.
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

LEVEL, SOLUTION, ASKED = "levels/0", "solution", "instance"
FIGURES, LAYOUT, OPTIMUM = f"{SOLUTION}/figures", f"{SOLUTION}/layout", f"{SOLUTION}/optimum"
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


def on_another_node(nodes: list[int]) -> None:
    nodes[0] = next(node for node in nodes if node != nodes[0])


def outside_the_set(document: Document, _: random.Random) -> None:
    usable: set[int] = set()
    for part in document["instance"]["nodes"].split(","):
        first, _, last = part.partition("-")
        usable.update(range(int(first), int(last or first) + 1))
    document["solution"]["nodes"][0] = min(set(range(max(usable))) - usable)


def status_lied(document: Document, rng: random.Random) -> None:
    was = document["levels"][0]["status"]
    both_put("status", "feasible" if was == "optimal" else "optimal")(document, rng)


def last_message_dropped(document: Document, _: random.Random) -> None:
    application = document["instance"]["application"]
    lists = [application[field] for field in ("sources", "targets", "bytes")]
    ends = list(zip(*lists, strict=True))
    last = next(k for k, (a, b, size) in enumerate(ends) if a != b and size)
    for one in lists:
        one.pop(last)


def family_widened(document: Document, _: random.Random) -> None:
    shape = document["instance"]["machine"]["shape"]
    family = document["levels"][0]["certificate"]["families"][0]
    family["extents"] = [max(1, n // 2) if n > 2 else n for n in shape]


def window_moved(document: Document, _: random.Random) -> None:
    origin = document["solution"]["layout"]["origin"]
    origin[0] = (origin[0] + 1) % document["instance"]["machine"]["shape"][0]


def window_too_shallow(document: Document, _: random.Random) -> None:
    layout = document["solution"]["layout"]
    layout["depth"] = layout["logical"][layout["pencil"]] - 1


def first_wide_lowered(logical: list[int]) -> None:
    logical[next(d for d, n in enumerate(logical) if n > 1)] -= 1


def flow_of(document: Document) -> dict[str, list[int]]:
    found: dict[str, list[int]] = document["solution"]["optimum"]["flow"]
    return found


def flow_emptied(document: Document, _: random.Random) -> None:
    for numbers in flow_of(document).values():
        numbers.clear()


def flow_arc_dropped(document: Document, _: random.Random) -> None:
    at = next(k for k, amount in enumerate(flow_of(document)["flows"]) if amount)
    for numbers in flow_of(document).values():
        numbers.pop(at)


def flow_arc_reversed(document: Document, _: random.Random) -> None:
    tails, heads = flow_of(document)["tails"], flow_of(document)["heads"]
    at = tails.index(-1)
    tails[at], heads[at] = heads[at], tails[at]


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
    "task_added": (ALL, "solution", again("solution/nodes")),
    "task_on_a_full_node": (
        ("blocks", "alone", "graph"),
        "solution",
        with_list("solution/nodes", on_another_node),
    ),
    "task_on_a_node_outside_the_set": (
        ("rough", "alone", "pencils", "folded"),
        "solution",
        outside_the_set,
    ),
    "task_beyond_the_machine": (ALL, "solution", put("solution/nodes/0", 1 << 60)),
    "tasks_swapped": ((*ROUGH, "whole"), "figures layout", swap("solution/nodes", 0, -1)),
    # figures
    "hop_bytes_lied": (ALL, "figures", add(f"{FIGURES}/hop_bytes", -1)),
    "hops_lied": (ALL, "figures", add(f"{FIGURES}/hops", -1)),
    "off_router_messages_lied": (ALL, "figures", add(f"{FIGURES}/off_router_messages", -1)),
    "off_router_bytes_lied": (ALL, "figures", add(f"{FIGURES}/off_router_bytes", -1)),
    "max_hops_lied": (ALL, "figures", add(f"{FIGURES}/max_hops", -1)),
    "histogram_lied": (
        ALL,
        "figures",
        both(add(f"{FIGURES}/histogram/0", 1), add(f"{FIGURES}/histogram/-1", -1)),
    ),
    "histogram_padded": (ALL, "figures", append(f"{FIGURES}/histogram", 0)),
    "link_load_lied": (ALL, "figures", add(f"{FIGURES}/max_link_load/numerator", -1)),
    "link_load_dropped": (ALL, "figures", put(f"{FIGURES}/max_link_load", None)),
    # the level
    "objective_lowered": (ALL, HOPS, both(add(f"{LEVEL}/objective", -1), refigure)),
    "bound_raised_by_one": (ROUGH, BOUND, both(add(f"{LEVEL}/bound", 1), refigure)),
    "bound_above_the_objective": (
        RIGHT,
        f"{HOPS} {BOUND}",
        both(copied(f"{LEVEL}/bound", f"{LEVEL}/objective"), add(f"{LEVEL}/bound", 1), refigure),
    ),
    "status_lied": (ALL, HOPS, status_lied),
    "status_of_a_failure": (ALL, HOPS, both_put("status", "infeasible")),
    "gap_lied": (
        ROUGH,
        HOPS,
        both(change(f"{LEVEL}/gap", lambda gap: gap / 2), copied("gap", f"{LEVEL}/gap")),
    ),
    "proof_withheld": (ALL, HOPS, both_put("proof", "none")),
    "proof_called_a_search": (ALL, BOUND, both_put("proof", "search")),
    "certificate_dropped": (ALL, HOPS, put(CERTIFICATE, None)),
    "level_doubled": (ALL, "levels", again("levels")),
    "level_removed": (ALL, "levels", empty("levels")),
    "top_objective_differs": (ALL, "levels", add("objective", 1)),
    "top_bound_differs": (ALL, "levels", add("bound", 1)),
    # the instance
    "capacity_lowered": (
        ("blocks", "rough", "ring", "whole"),
        "instance solution",
        add("instance/tasks_per_node", -1),
    ),
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
    "bytes_changed": (
        ("blocks", "rough", "alone", "ring"),
        "figures",
        add("instance/application/bytes/0/0", 1),
    ),
    "message_dropped": (("graph",), "figures", last_message_dropped),
    "message_beyond_the_tasks": (
        ("graph",),
        "instance",
        put("instance/application/sources/0", 99),
    ),
    "grid_closed": (
        ("blocks", "alone", "pencils"),
        "figures",
        put("instance/application/periodic/0", True),
    ),
    "periodic_shortened": (("rough", "ring"), "instance", cut("instance/application/periodic")),
    "mesh_closed": (("rough",), "figures", every("instance/machine/wrap", lambda _: True)),
    "bandwidth_changed": (
        ("blocks", "alone", "ring"),
        "figures",
        both(
            copied("instance/machine/bandwidth", "instance/machine/shape"),
            every("instance/machine/bandwidth", lambda _: 3),
        ),
    ),
    # certificates
    "total_claimed_where_routers_share": (RIGHT, BOUND, put(CERTIFICATE, {"kind": "total"})),
    "blocks_claimed_of_a_graph": (
        ("graph",),
        BOUND,
        put(CERTIFICATE, {"kind": "blocks", "families": []}),
    ),
    "multiplier_raised": (BLOCKS, BOUND, multiplied("multiplier", 1000, 1000, 1)),
    "multiplier_lowered": (BLOCKS, BOUND, multiplied("multiplier", 1, 2)),
    "multiplier_negative": (BLOCKS, BOUND, multiplied("multiplier", -1, 1)),
    "slope_raised": (BLOCKS, BOUND, add(f"{FAMILY}/slope", 10)),
    "slope_dropped": (("rough", "pencils", "folded"), BOUND, multiplied("slope", 0, 1)),
    "family_widened": (BLOCKS, BOUND, family_widened),
    "family_beyond_the_machine": (BLOCKS, BOUND, put(f"{FAMILY}/extents/0", 99)),
    "family_of_fewer_dimensions": (BLOCKS, BOUND, cut(f"{FAMILY}/extents")),
    "single_cuts_of_a_ring": (("blocks", "ring"), BOUND, put(f"{FAMILY}/extents/-1", 0)),
    "family_doubled": (BLOCKS, BOUND, again(f"{CERTIFICATE}/families")),
    "families_dropped": (BLOCKS, BOUND, empty(f"{CERTIFICATE}/families")),
    # layouts
    "window_moved": (LAYOUTS, "layout", window_moved),
    "window_outside_the_machine": (LAYOUTS, "layout", put(f"{LAYOUT}/origin/0", 99)),
    "window_too_shallow": (LAYOUTS, "layout", window_too_shallow),
    "window_too_deep": (LAYOUTS, "layout", put(f"{LAYOUT}/depth", 99)),
    "pencils_along_nothing": (LAYOUTS, "layout", put(f"{LAYOUT}/pencil", 7)),
    "axes_swapped": (("pencils", "ring", "whole"), "layout", swap(f"{LAYOUT}/axes", 0, 2)),
    "axis_doubled": (LAYOUTS, "layout", copied(f"{LAYOUT}/axes/0", f"{LAYOUT}/axes/2")),
    "partitions_changed": (LAYOUTS, "layout", add(f"{LAYOUT}/partitions/0", 1)),
    "logical_lowered": (LAYOUTS, "layout", with_list(f"{LAYOUT}/logical", first_wide_lowered)),
    "list_shortened": (LAYOUTS, "layout", cut(f"{LAYOUT}/partitions")),
    "whole_forgotten": (("whole",), "layout", put(f"{LAYOUT}/whole", None)),
    "folds_forgotten": (("folded",), "layout", put(f"{LAYOUT}/folds", [])),
    "layers_reversed": (("folded",), "layout", with_list(f"{LAYOUT}/layer_order", list.reverse)),
    "layers_doubled": (
        ("folded",),
        "layout",
        copied(f"{LAYOUT}/layer_order/0", f"{LAYOUT}/layer_order/1"),
    ),
    "layers_staggered": (("folded",), "layout", put(f"{LAYOUT}/stagger", True)),
    "layout_dropped": (LAYOUTS, "optimum", put(LAYOUT, None)),
    # the optimum among pencil placements
    "class_objective_raised": (LAYOUTS, "optimum", add(f"{OPTIMUM}/objective", 1)),
    "class_bound_raised": (LAYOUTS, "optimum", add(f"{OPTIMUM}/bound", 1)),
    "class_window_bound_raised": (FLOWS, "optimum", add(f"{OPTIMUM}/window_bound", 1)),
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
    "class_proof_lied": (LAYOUTS, "optimum", put(f"{OPTIMUM}/proof", "certificate")),
    "flow_missing": (FLOWS, "optimum", put(FLOW, None)),
    "window_bound_missing": (FLOWS, "optimum", put(f"{OPTIMUM}/window_bound", None)),
    "flow_emptied": (FLOWS, "optimum", flow_emptied),
    "flow_raised_on_an_arc": (FLOWS, "optimum", add(f"{FLOW}/flows/0", 1)),
    "flow_doubled": (FLOWS, "optimum", every(f"{FLOW}/flows", lambda x: 2 * x)),
    "flow_halved": (FLOWS, "optimum", every(f"{FLOW}/flows", lambda x: x // 2)),
    "flow_arc_dropped": (FLOWS, "optimum", flow_arc_dropped),
    "flow_arc_short_cut": (
        FLOWS,
        "optimum",
        both(append(f"{FLOW}/tails", -1), append(f"{FLOW}/heads", -2), append(f"{FLOW}/flows", 1)),
    ),
    "flow_arc_reversed": (FLOWS, "optimum", flow_arc_reversed),
    "flow_of_unknown_vertex": (FLOWS, "optimum", put(f"{FLOW}/heads/0", 1 << 40)),
    "flow_negative": (FLOWS, "optimum", change(f"{FLOW}/flows/0", lambda x: -x or -1)),
    "flow_too_large_to_add": (FLOWS, "optimum", put(f"{FLOW}/flows/0", 1 << 70)),
    "flow_lists_uneven": (FLOWS, "optimum", cut(f"{FLOW}/heads")),
}
MUTATIONS = {
    name: Mutation(edit, cases, tuple(claims.split()))
    for name, (cases, claims, edit) in _TABLE.items()
}
