"""Slurm's files: its topologies, and what its commands list of nodes and jobs.

Read in this order: `fields` (what is read of every field), `nodes`, `listings` (three commands that
list jobs, as one form), `jobs` and `cluster` (a snapshot of all). The machine: `topology` finds out
which of Slurm's two files it is and reads topology.yaml, `topology_conf` the other one, into
switches, `blocks` or a `torus`.
"""
