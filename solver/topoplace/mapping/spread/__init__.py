"""Groups of tasks that should span few domains (docs/proofs/spread.md).

`groups` reads them, `bounds` has what no mapping is below, `search` finds mappings with the moves
of `_kernels`, and `exact` goes through all of a few tasks.
"""
