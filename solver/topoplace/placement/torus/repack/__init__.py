"""Which running jobs move so that others start, or so that the most space becomes free.

Read `problem`, `places`, `packing` and `outcome`, in this order; then `defragment`.
"""
