"""What a person wants to read after an allocation on a tree: a few lines of plain text."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from topoplace.report.text import gap_text, plain_table
from topoplace.result.mapping import Fraction as FractionModel
from topoplace.result.tree import Allocation, TreeResult
from topoplace.snapshot.tree_state import prepare_tree

_MOST_LEAVES = 8


def tree_summary(result: TreeResult) -> str:
    """Return the result as text: its levels, who starts, and the nodes of each job per leaf."""
    hit = ", time limit hit" if result.limits.hit else ""
    lines = [
        f"{result.instance.name}: {result.status} by {result.method}, {result.seconds:.2f} s{hit}",
        plain_table(
            ["level", "objective", "bound", "gap", "status", "proof"],
            [
                [
                    f"{level.name} ({level.sense})",
                    _decimal(level.objective),
                    _decimal(level.bound),
                    gap_text(level.gap),
                    level.status,
                    level.proof,
                ]
                for level in result.levels
            ],
            right=(1, 2, 3),
        ),
    ]
    queue = result.instance.queue
    if result.solution is None:
        return "\n".join([*lines, f"no allocation found for the {len(queue)} requests"])
    allocations = result.solution.allocations
    started = {allocation.request for allocation in allocations}
    nodes = sum(len(allocation.nodes) for allocation in allocations)
    lines.append(f"started {len(started)} of {len(queue)} requests, {nodes:,} nodes")
    waiting = [f"{r.id} ({r.nodes})" for r in queue if r.id not in started]
    if waiting:
        lines.append(f"waiting: {', '.join(waiting)}")
    lines.append(f"total cost {_decimal(result.solution.cost)} = {_exact(result.solution.cost)}")
    if allocations:
        lines.append(_allocations(result, allocations))
    return "\n".join(lines)


def _allocations(result: TreeResult, allocations: list[Allocation]) -> str:
    tree = prepare_tree(result.instance).tree
    leaf_of = {
        name: tree.switches[leaf].name
        for name, leaf in zip(tree.node_names, tree.leaf_of_node.tolist(), strict=True)
    }
    rows = []
    for allocation in allocations:
        per_leaf = Counter(leaf_of[name] for name in allocation.nodes)  # in order of first rank
        parts = [f"{leaf}:{count}" for leaf, count in per_leaf.items()]
        more = len(parts) - _MOST_LEAVES
        shown = parts[:_MOST_LEAVES] + ([f"and {more} more"] if more > 0 else [])
        rows.append(
            [
                allocation.request,
                f"{len(allocation.nodes):,}",
                _decimal(allocation.cost),
                _exact(allocation.cost),
                str(len(per_leaf)),
                " ".join(shown),
            ]
        )
    header = ["request", "nodes", "cost", "exactly", "leaves", "nodes per leaf"]
    return plain_table(header, rows, right=(1, 2, 3, 4))


def _decimal(value: FractionModel | None) -> str:
    if value is None:
        return "-"
    if value.denominator == 1:
        return f"{value.numerator:,}"
    return f"{float(Fraction(value.numerator, value.denominator)):,.3f}"


def _exact(value: FractionModel) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return f"{value.numerator}/{value.denominator}"
