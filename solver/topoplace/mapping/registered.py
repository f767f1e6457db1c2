"""The mapping methods shipped; importing this module registers them."""

from topoplace.mapping.methods import (
    auto,
    blocks,
    default,
    fold2d,
    grid_order,
    local_search,
    pencils,
    random_blocks,
    round_robin,
    topaware,
)

__all__ = [
    "auto",
    "blocks",
    "default",
    "fold2d",
    "grid_order",
    "local_search",
    "pencils",
    "random_blocks",
    "round_robin",
    "topaware",
]
