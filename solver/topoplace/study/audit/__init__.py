"""Audits: decisions of schedulers held against the rules and the proven optimum.

In the order in which to read it: `cases` says what is judged, and reads it from files; `judging`
holds one decision against the rules and the optimum; `run` judges many and adds them up; `live`
puts states to an allocator and takes its answers.
"""
