"""The exact method for costs on trees (Mishra 2020): an optimum, and its proof.

Read `method` first: which requests start (`starts`), then each alone and all together (`requests`).
A request alone is a `job`, with a table of the states of its leaves. Its least cost is one search
(`thresholds`) with an oracle per pattern: `leaf_states` for any, `cubes` for full cubes and rings,
`grids`, and for binomial trees `plans` with the search in `binomial`. Allocations come from
`annealing` and `settling`. Files with an underscore are compiled loops.
"""
