"""Ways to spoil a correct mapping result, each certainly wrong.

A mutation changes a document in place. It is listed with the cases it applies to and the claim
that fails first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mapping_results import CASES, Document

Change = Callable[[Document], None]

ALL = tuple(CASES)
LAYOUTS = ("pencils", "ring", "folded", "whole")


@dataclass(frozen=True)
class Mutation:
    """A change, the cases it applies to, and the claims that may be the first to fail."""

    change: Change
    cases: tuple[str, ...]
    caught_as: tuple[str, ...]


MUTATIONS: dict[str, Mutation] = {}


def mutation(cases: tuple[str, ...], *caught_as: str) -> Callable[[Change], Change]:
    """Return a decorator that lists a change under its name."""

    def enter(change: Change) -> Change:
        MUTATIONS[change.__name__] = Mutation(change, cases, caught_as)
        return change

    return enter


def listed(name: str, cases: tuple[str, ...], caught_as: str, change: Change) -> None:
    """List one of several changes that differ in a field only."""
    MUTATIONS[name] = Mutation(change, cases, (caught_as,))


def nodes_of(document: Document) -> list[int]:
    found: list[int] = document["solution"]["nodes"]
    return found


def level_of(document: Document) -> Document:
    found: Document = document["levels"][0]
    return found


def refigure(document: Document) -> None:
    """Make gap, status and the top figures fit objective and bound again."""
    level = level_of(document)
    objective, bound = level["objective"], level["bound"]
    level["gap"] = (objective - bound) / max(1, objective)
    level["status"] = "optimal" if objective == bound else "feasible"
    for field in ("status", "objective", "bound", "gap", "proof"):
        document[field] = level[field]


@mutation(ALL, "solution")
def task_left_out(document: Document) -> None:
    nodes_of(document).pop()


@mutation(ALL, "solution")
def task_added(document: Document) -> None:
    nodes_of(document).append(nodes_of(document)[0])


@mutation(("blocks", "alone", "graph"), "solution")
def task_on_a_full_node(document: Document) -> None:
    nodes = nodes_of(document)
    nodes[0] = next(node for node in nodes if node != nodes[0])


@mutation(("rough", "alone", "pencils", "folded"), "solution")
def task_on_a_node_outside_the_set(document: Document) -> None:
    usable = set()
    for part in document["instance"]["nodes"].split(","):
        first, _, last = part.partition("-")
        usable.update(range(int(first), int(last or first) + 1))
    nodes_of(document)[0] = min(set(range(max(usable))) - usable)


@mutation(ALL, "solution")
def task_beyond_the_machine(document: Document) -> None:
    nodes_of(document)[0] = 1 << 60


@mutation(("rough", "alone", "graph", "folded", "whole"), "figures", "layout")
def tasks_swapped(document: Document) -> None:
    nodes = nodes_of(document)
    nodes[0], nodes[-1] = nodes[-1], nodes[0]


for field in ("hop_bytes", "hops", "off_router_messages", "off_router_bytes", "max_hops"):

    def lie(document: Document, field: str = field) -> None:
        document["solution"]["figures"][field] -= 1

    listed(f"{field}_lied", ALL, "figures", lie)


@mutation(ALL, "figures")
def histogram_lied(document: Document) -> None:
    histogram = document["solution"]["figures"]["histogram"]
    histogram[0] += 1
    histogram[-1] -= 1


@mutation(ALL, "figures")
def histogram_padded(document: Document) -> None:
    document["solution"]["figures"]["histogram"].append(0)


@mutation(ALL, "figures")
def link_load_lied(document: Document) -> None:
    document["solution"]["figures"]["max_link_load"]["numerator"] -= 1


@mutation(ALL, "figures")
def link_load_dropped(document: Document) -> None:
    document["solution"]["figures"]["max_link_load"] = None


@mutation(ALL, "hop-bytes")
def objective_lowered(document: Document) -> None:
    level_of(document)["objective"] -= 1
    refigure(document)


@mutation(("rough", "alone", "graph", "folded"), "hop-bytes.bound")
def bound_raised_by_one(document: Document) -> None:
    level_of(document)["bound"] += 1
    refigure(document)


@mutation(("blocks", "pencils", "ring"), "hop-bytes", "hop-bytes.bound")
def bound_above_the_objective(document: Document) -> None:
    level_of(document)["bound"] = level_of(document)["objective"] + 1
    refigure(document)


@mutation(ALL, "hop-bytes")
def status_lied(document: Document) -> None:
    level = level_of(document)
    level["status"] = "feasible" if level["status"] == "optimal" else "optimal"
    document["status"] = level["status"]


@mutation(ALL, "hop-bytes")
def status_of_a_failure(document: Document) -> None:
    level_of(document)["status"] = document["status"] = "infeasible"


@mutation(("rough", "alone", "graph", "folded"), "hop-bytes")
def gap_lied(document: Document) -> None:
    level_of(document)["gap"] = document["gap"] = level_of(document)["gap"] / 2


@mutation(ALL, "hop-bytes")
def proof_withheld(document: Document) -> None:
    level_of(document)["proof"] = document["proof"] = "none"


@mutation(ALL, "hop-bytes.bound")
def proof_called_a_search(document: Document) -> None:
    level_of(document)["proof"] = document["proof"] = "search"


@mutation(ALL, "hop-bytes")
def certificate_dropped(document: Document) -> None:
    level_of(document)["certificate"] = None


@mutation(ALL, "levels")
def level_doubled(document: Document) -> None:
    document["levels"].append(document["levels"][0])


@mutation(ALL, "levels")
def level_removed(document: Document) -> None:
    document["levels"].clear()


for field in ("objective", "bound"):

    def differ(document: Document, field: str = field) -> None:
        document[field] += 1

    listed(f"top_{field}_differs", ALL, "levels", differ)


@mutation(("blocks", "rough", "ring", "whole"), "instance", "solution")
def capacity_lowered(document: Document) -> None:
    document["instance"]["tasks_per_node"] -= 1


@mutation(("rough", "pencils", "folded"), "hop-bytes.bound", "layout", "optimum", "figures")
def capacity_raised(document: Document) -> None:
    document["instance"]["tasks_per_node"] *= 4


@mutation(ALL, "instance", "solution")
def nodes_taken_away(document: Document) -> None:
    document["instance"]["nodes"] = str(nodes_of(document)[0])


@mutation(("blocks", "rough", "alone", "ring"), "figures")
def bytes_changed(document: Document) -> None:
    document["instance"]["application"]["bytes"][0][0] += 1


@mutation(("graph",), "figures")
def message_dropped(document: Document) -> None:
    application = document["instance"]["application"]
    ends = list(
        zip(application["sources"], application["targets"], application["bytes"], strict=True)
    )
    last = next(k for k, (a, b, size) in enumerate(ends) if a != b and size)
    for field in ("sources", "targets", "bytes"):
        application[field].pop(last)


@mutation(("graph",), "instance")
def message_beyond_the_tasks(document: Document) -> None:
    document["instance"]["application"]["sources"][0] = 99


@mutation(("blocks", "alone", "pencils"), "figures")
def grid_closed(document: Document) -> None:
    document["instance"]["application"]["periodic"][0] = True


@mutation(("rough", "ring"), "instance")
def periodic_shortened(document: Document) -> None:
    document["instance"]["application"]["periodic"].pop()


@mutation(("rough",), "figures")
def mesh_closed(document: Document) -> None:
    machine = document["instance"]["machine"]
    machine["wrap"] = [True] * len(machine["shape"])


@mutation(("blocks", "alone", "ring"), "figures")
def bandwidth_changed(document: Document) -> None:
    machine = document["instance"]["machine"]
    machine["bandwidth"] = [3] * len(machine["shape"])
