"""Which running jobs move so that others start, or so that there is most room.

Read `problem`, `places`, `packing`, `order` and `outcome`, in this order; then `defragment`. What a
user asks for becomes an instance in `asked`.
"""
