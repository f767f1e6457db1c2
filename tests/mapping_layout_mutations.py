"""Ways to spoil what a mapping result says of its layout, its window and its flow."""

from __future__ import annotations

from mapping_mutations import LAYOUTS, listed, mutation
from mapping_results import Document

FLOWS = ("pencils", "ring", "folded")


def layout_of(document: Document) -> Document:
    found: Document = document["solution"]["layout"]
    return found


def optimum_of(document: Document) -> Document:
    found: Document = document["solution"]["optimum"]
    return found


def flow_of(document: Document) -> dict[str, list[int]]:
    found: dict[str, list[int]] = optimum_of(document)["flow"]
    return found


@mutation(LAYOUTS, "layout")
def window_moved(document: Document) -> None:
    layout = layout_of(document)
    layout["origin"][0] = (layout["origin"][0] + 1) % document["instance"]["machine"]["shape"][0]


@mutation(LAYOUTS, "layout")
def window_outside_the_machine(document: Document) -> None:
    layout_of(document)["origin"][0] = 99


@mutation(LAYOUTS, "layout")
def window_too_shallow(document: Document) -> None:
    layout = layout_of(document)
    layout["depth"] = layout["logical"][layout["pencil"]] - 1


@mutation(LAYOUTS, "layout")
def window_too_deep(document: Document) -> None:
    layout_of(document)["depth"] = 99


@mutation(LAYOUTS, "layout")
def pencils_along_nothing(document: Document) -> None:
    layout_of(document)["pencil"] = 7


@mutation(("pencils", "ring", "whole"), "layout")
def axes_swapped(document: Document) -> None:
    axes = layout_of(document)["axes"]
    axes[0], axes[2] = axes[2], axes[0]


@mutation(LAYOUTS, "layout")
def axis_doubled(document: Document) -> None:
    axes = layout_of(document)["axes"]
    axes[0] = axes[2]


@mutation(LAYOUTS, "layout")
def partitions_changed(document: Document) -> None:
    layout_of(document)["partitions"][0] += 1


@mutation(LAYOUTS, "layout")
def logical_lowered(document: Document) -> None:
    logical = layout_of(document)["logical"]
    at = next(d for d, n in enumerate(logical) if n > 1)
    logical[at] -= 1


@mutation(LAYOUTS, "layout")
def list_shortened(document: Document) -> None:
    layout_of(document)["partitions"].pop()


@mutation(("whole",), "layout")
def whole_forgotten(document: Document) -> None:
    layout_of(document)["whole"] = None


@mutation(("folded",), "layout")
def folds_forgotten(document: Document) -> None:
    layout_of(document)["folds"] = []


@mutation(("folded",), "layout")
def layers_reversed(document: Document) -> None:
    layout_of(document)["layer_order"].reverse()


@mutation(("folded",), "layout")
def layers_doubled(document: Document) -> None:
    order = layout_of(document)["layer_order"]
    order[0] = order[1]


@mutation(("folded",), "layout")
def layers_staggered(document: Document) -> None:
    layout_of(document)["stagger"] = True


@mutation(LAYOUTS, "optimum")
def layout_dropped(document: Document) -> None:
    document["solution"]["layout"] = None


for field, cases in (("objective", LAYOUTS), ("bound", LAYOUTS), ("window_bound", FLOWS)):

    def raise_one(document: Document, field: str = field) -> None:
        optimum_of(document)[field] += 1

    listed(f"class_{field}_raised", cases, "optimum", raise_one)


@mutation(LAYOUTS, "optimum")
def class_objective_lowered(document: Document) -> None:
    for field in ("objective", "bound"):
        optimum_of(document)[field] -= 1


@mutation(FLOWS, "optimum")
def window_bound_below_the_class_bound(document: Document) -> None:
    optimum_of(document)["window_bound"] = optimum_of(document)["bound"] - 1


@mutation(LAYOUTS, "optimum")
def class_proof_lied(document: Document) -> None:
    optimum_of(document)["proof"] = "certificate"


@mutation(FLOWS, "optimum")
def flow_missing(document: Document) -> None:
    optimum_of(document)["flow"] = None


@mutation(FLOWS, "optimum")
def window_bound_missing(document: Document) -> None:
    optimum_of(document)["window_bound"] = None


@mutation(FLOWS, "optimum")
def flow_emptied(document: Document) -> None:
    for numbers in flow_of(document).values():
        numbers.clear()


@mutation(FLOWS, "optimum")
def flow_raised_on_an_arc(document: Document) -> None:
    flow_of(document)["flows"][0] += 1


@mutation(FLOWS, "optimum")
def flow_doubled(document: Document) -> None:
    flow = flow_of(document)
    flow["flows"][:] = [2 * amount for amount in flow["flows"]]


@mutation(FLOWS, "optimum")
def flow_halved(document: Document) -> None:
    flow = flow_of(document)
    flow["flows"][:] = [amount // 2 for amount in flow["flows"]]


@mutation(FLOWS, "optimum")
def flow_arc_dropped(document: Document) -> None:
    at = next(k for k, amount in enumerate(flow_of(document)["flows"]) if amount)
    for numbers in flow_of(document).values():
        numbers.pop(at)


@mutation(FLOWS, "optimum")
def flow_arc_short_cut(document: Document) -> None:
    flow = flow_of(document)
    flow["tails"].append(-1), flow["heads"].append(-2), flow["flows"].append(1)


@mutation(FLOWS, "optimum")
def flow_arc_reversed(document: Document) -> None:
    flow = flow_of(document)
    at = flow["tails"].index(-1)
    flow["tails"][at], flow["heads"][at] = flow["heads"][at], flow["tails"][at]


@mutation(FLOWS, "optimum")
def flow_of_unknown_vertex(document: Document) -> None:
    flow_of(document)["heads"][0] = 1 << 40


@mutation(FLOWS, "optimum")
def flow_negative(document: Document) -> None:
    flow = flow_of(document)
    flow["flows"][0] = -flow["flows"][0] or -1


@mutation(FLOWS, "optimum")
def flow_too_large_to_add(document: Document) -> None:
    flow_of(document)["flows"][0] = 1 << 70


@mutation(FLOWS, "optimum")
def flow_lists_uneven(document: Document) -> None:
    flow_of(document)["heads"].pop()
