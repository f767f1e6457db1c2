"""Which running jobs move so that others start, or so that the most space becomes free.

Read `problem`, `places`, `packing`, `order` and `outcome`, in this order; then `defragment`.
`asked` turns a user's request into an instance.
"""
