"""Which running jobs move so that others start.

Read `problem`, `places`, `packing`, `order` and `outcome`, in this order.
"""
