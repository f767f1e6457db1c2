"""The mapping methods shipped: each name, and the module that registers it when imported.

A table instead of imports: compiled kernels take time to load, and a command runs one method.
"""

MODULES = {
    "auto": "auto",
    "bisection": "bisection",
    "blocks": "blocks",
    "default": "default",
    "exact": "exact",
    "fold-2d": "fold2d",
    "greedy": "greedy",
    "grid-order": "grid_order",
    "hilbert": "hilbert",
    "local-search": "local_search",
    "pencils": "pencils",
    "random-blocks": "random_blocks",
    "round-robin": "round_robin",
    "scotch": "scotch",
    "search": "search",
    "tabu": "tabu",
    "topaware": "topaware",
}
