"""Models and proofs for the programs of others.

`model` has variables of 0 and 1, rows and an objective. `packing`, `levels` and `mapping` make such
models of one level of a problem, `writers` write them in the formats of solvers, `veripb` writes
the proof of a bound for a checker that is not ours, and `exported` puts these together.
"""
