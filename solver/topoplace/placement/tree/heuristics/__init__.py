"""Allocators that take one request at a time.

Ranks follow the order in which an allocator takes the nodes, leaf by leaf; only Slurm's default
puts them in node order, as Slurm does.
"""
