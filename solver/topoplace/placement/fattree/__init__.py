"""Placement on fat trees, every job with links of its own (docs/proofs/fattree.md).

`state` reads a snapshot, `places` lists where a request may be, `packing` is the plug-in of the
engine, `heuristics` has the rules of Jigsaw and LaaS, `routing` the routes that a job gets.
"""
