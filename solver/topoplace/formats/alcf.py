"""Job logs of the Argonne Leadership Computing Facility (CSV): Mira, Theta, Polaris and others."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from topoplace.errors import InputError, blamed_on, number_of
from topoplace.formats.declared import table
from topoplace.formats.swf import SwfLog
from topoplace.formats.text import lines_of, require_once
from topoplace.snapshot.schema import Request

LOG = table(
    "Job logs of ALCF",
    """
    read COBALT_JOBID, JOB_NAME: the request; the name up to a point where there is no number
    read QUEUED_TIMESTAMP: `submitted`
    read NODES_REQUESTED: the nodes
    read NODES_USED: the nodes, if NODES_REQUESTED does not say
    read WALLTIME_SECONDS: the walltime
    read RUNTIME_SECONDS: the walltime, if WALLTIME_SECONDS does not say; replays
    neutral QUEUE_NAME: a class of jobs, not of nodes
    neutral START_TIMESTAMP, END_TIMESTAMP, LOCATION, EXIT_STATUS, CORES_USED, CORES_REQUESTED: \
        what became of the job, and other columns
    """,
)

NEEDED = ("QUEUED_TIMESTAMP", "NODES_USED", "WALLTIME_SECONDS", "RUNTIME_SECONDS")
"""Columns that every such log has."""


def is_alcf(path: str | Path) -> bool:
    """Return whether the first line of a file names the columns of such a log."""
    first = next((text for _, text in lines_of(path, "#;")), "")
    return all(name in first for name in NEEDED)


def read_alcf(path: str | Path) -> SwfLog:
    """Read a job log of ALCF (``ANL-ALCF-DJC-MIRA_20180101_20180731.csv``), in its order.

    Jobs without nodes are left out. Times of submission are in seconds since 1970, UTC; seconds of
    a fraction are rounded down.
    """
    lines = [*lines_of(path, "")]
    (_, header), rows = lines[0], lines[1:]
    columns = next(csv.reader([header.lstrip("\ufeff")]))
    place_of: dict[str, str] = {}
    requests: list[Request] = []
    run_times: list[int | None] = []
    without_size = 0
    for (place, _), cells in zip(rows, csv.reader(text for _, text in rows), strict=True):
        with blamed_on(path, place):
            if len(cells) != len(columns):
                expected = f"{number_of(len(columns), 'column')}, as in the first line"
                raise InputError(expected, value=len(cells))
            row = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
            job = row.get("COBALT_JOBID") or row.get("JOB_NAME", "").partition(".")[0]
            require_once(place_of, job, place, "job", field="COBALT_JOBID")
            nodes = _seconds(row, "NODES_REQUESTED") or _seconds(row, "NODES_USED")
            if not nodes:
                without_size += 1
                continue
            ran = _seconds(row, "RUNTIME_SECONDS")
            requests.append(
                Request(
                    id=job,
                    nodes=nodes,
                    walltime=_seconds(row, "WALLTIME_SECONDS") or ran,
                    submitted=_time(row["QUEUED_TIMESTAMP"]),
                )
            )
            run_times.append(ran)
    return SwfLog(tuple(requests), tuple(run_times), without_size, 0)


def _seconds(row: Mapping[str, str], name: str) -> int | None:
    """Return a number of a row, which may have a fraction; None if it is not there."""
    text = row.get(name, "")
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < 1 << 40:
        raise InputError("a number, 0 or more", field=name, value=text)
    return math.floor(number)


def _time(text: str) -> int | None:
    """Return a time such as ``2018-01-07 00:00:12.0`` in seconds since 1970."""
    if not text:
        return None
    try:
        known = datetime.fromisoformat(text)
    except ValueError:
        expected = "a time such as 2018-01-07 00:00:12"
        raise InputError(expected, field="QUEUED_TIMESTAMP", value=text) from None
    return math.floor(known.replace(tzinfo=known.tzinfo or UTC).timestamp())
