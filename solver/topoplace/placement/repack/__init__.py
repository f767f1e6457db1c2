"""Which running jobs move or end so that others start, or so that the most space becomes free.

Read `problem`, `packing`, `order` and `outcome`, in this order; then `defragment`. A kind of
machine says by a `Site` where its jobs may go: `Kind.moves`.
"""
