"""Equal boxes of the grid on random nodes: keeps neighbours together, ignores the topology."""

from __future__ import annotations

import itertools
import math

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.methods._boxes import cut_bytes, part_of_tasks
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register


@register("mapping", "random-blocks", "equal boxes of the grid on random nodes", needs_grid=True)
def map_random_blocks(problem: MappingProblem, options: Options) -> Outcome:
    """Put equal boxes of the grid on random nodes (Bhatele 2008, section 3: "RD").

    The boxes are those with the fewest bytes between them.

    Raises
    ------
    InputError
        If no cut into equal boxes fits the nodes.
    """
    grid = problem.grid
    assert grid is not None
    counts = _fewest_bytes_between(problem)
    parts = part_of_tasks(grid, counts)
    box = np.ravel_multi_index(tuple(parts.T), counts)
    rng = np.random.default_rng(options.seed)
    return outcome_of(rng.choice(problem.nodes, size=math.prod(counts), replace=False)[box])


def _fewest_bytes_between(problem: MappingProblem) -> tuple[int, ...]:
    """Return the parts per dimension of the best cut, one box per node."""
    grid, limit = problem.grid, problem.tasks_per_node
    assert grid is not None
    # more parts than the fewest for a given longest side only add cuts
    choices = [sorted({-(-n // side) for side in range(1, n + 1)}) for n in grid.shape]
    prices = cut_bytes(grid)

    def between(counts: tuple[int, ...]) -> int:
        return sum(
            price * (count - 1 + (wraps and count > 1))
            for price, count, wraps in zip(prices, counts, grid.periodic, strict=True)
        )

    fitting = [
        counts
        for counts in itertools.product(*choices)
        if math.prod(counts) <= len(problem.nodes)
        and math.prod(-(-n // c) for n, c in zip(grid.shape, counts, strict=True)) <= limit
    ]
    if not fitting:
        raise InputError(
            f"a grid that can be cut into at most {len(problem.nodes)} equal boxes of at most "
            f"{limit} tasks",
            field="shape",
            value=list(grid.shape),
        )
    return min(fitting, key=between)
