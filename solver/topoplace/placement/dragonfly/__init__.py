"""Placement on dragonflies: groups and routers are levels, and jobs may not share global links.

Read `problem` first, then `packing`, `orders` and `view`.
"""
