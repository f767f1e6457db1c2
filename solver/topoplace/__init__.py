"""Optimal, certified placement of jobs and tasks on HPC interconnects."""

__version__ = "0.1.0"
