"""Jobs as ``squeue --json`` prints them (Slurm 21.08 and later)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from topoplace.errors import InputError
from topoplace.snapshot.readers.slurm.job import SlurmJob, holds_nodes, read_comment

_MAX_NUMBER = 10**18


def read_squeue_json(text: str) -> Iterator[tuple[str, SlurmJob | None]]:
    """Yield place and job of every entry; None for a job that has ended.

    Raises
    ------
    InputError
        Naming the field and the value.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("a JSON document") from None
    jobs = raw.get("jobs") if isinstance(raw, dict) else None
    if not isinstance(jobs, list):
        found = "nothing" if jobs is None else None
        expected = "a list of jobs, as squeue --json writes"
        raise InputError(expected, field="jobs", value=jobs, found=found)
    for idx, job in enumerate(jobs):
        place = f"jobs[{idx}]"
        if not isinstance(job, dict):
            raise InputError("an object", field=place, value=job)
        yield place, _job(job, place)


def _job(raw: dict[str, Any], place: str) -> SlurmJob | None:
    states = raw.get("job_state")
    states = states if isinstance(states, list) else [states]
    holding = holds_nodes([str(state) for state in states], f"{place}.job_state")
    if holding is None:
        return None
    communication, patterns = read_comment(_text(raw, "comment", place), f"{place}.comment")
    minutes = _number(raw, "time_limit", place)
    num_nodes = _number(raw, "node_count", place)
    if not num_nodes:
        raise InputError("an integer from 1", field=f"{place}.node_count", value=num_nodes)
    return SlurmJob(
        _id(raw, place),
        holding,
        num_nodes,
        _text(raw, "nodes", place),
        _number(raw, "priority", place) or 0,
        None if minutes is None else 60 * minutes,
        _number(raw, "submit_time", place) or None,
        communication,
        patterns,
    )


def _id(raw: dict[str, Any], place: str) -> str:
    """Return the id as squeue's ``%i`` prints it."""
    number = _number(raw, "job_id", place)
    if number is None:
        raise InputError("a job number", field=f"{place}.job_id", value=raw.get("job_id"))
    array, task = _number(raw, "array_job_id", place), _number(raw, "array_task_id", place)
    tasks = _text(raw, "array_task_string", place)
    if array and (tasks or task is not None):
        return f"{array}_[{tasks}]" if tasks else f"{array}_{task}"
    component = _number(raw, "het_job_id", place)
    if component:
        return f"{component}+{_number(raw, 'het_job_offset', place) or 0}"
    return str(number)


def _number(raw: dict[str, Any], key: str, place: str) -> int | None:
    """Return a number, plain or (since Slurm 23.02) with flags `set` and `infinite`."""
    value = raw.get(key)
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MAX_NUMBER:
        raise InputError("an integer from 0", field=f"{place}.{key}", value=value)
    return value


def _text(raw: dict[str, Any], key: str, place: str) -> str:
    value = raw.get(key) or ""
    if not isinstance(value, str):
        raise InputError("text", field=f"{place}.{key}", value=value)
    return value
