"""Thousands of instances, solved once each: `run.run_batch` (docs/guide/batch.md).

Nothing is imported here: a worker process must set its environment before numpy is loaded.
"""
