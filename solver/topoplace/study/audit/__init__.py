"""Audits: decisions of schedulers, compared with the rules and the proven optimum.

In the order in which to read it: `cases` defines what is judged, and reads it from files; `judging`
compares one decision with the rules and the optimum; `run` judges many and adds them up; `live`
gives states to an allocator and takes its answers.
"""
