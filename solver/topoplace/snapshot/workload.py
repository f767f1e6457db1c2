"""Tables of applications and job sizes, from which queues and running jobs are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from topoplace.snapshot.files import read_document
from topoplace.snapshot.machines import data_folder
from topoplace.snapshot.schema import Model, Name, Request

WORKLOAD_SCHEMA = "topoplace.workload/1"

Minutes = Annotated[int, Field(ge=1, le=1 << 20)]
JobSize = Annotated[int, Field(ge=1, le=1 << 31)]


class WorkloadRow(Model):
    """Job sizes of one application: every size for every class."""

    application: Name
    nodes: Annotated[list[JobSize], Field(min_length=1)]
    classes: Annotated[list[Name], Field(min_length=1)]
    minutes: Annotated[list[Minutes], Field(min_length=2, max_length=2)] = Field(
        description="shortest and longest time limit"
    )


class Workload(Model):
    """A workload table."""

    schema_version: Annotated[Literal["topoplace.workload/1"], Field(alias="schema")]
    name: Name
    source: str | None = None
    rows: list[WorkloadRow]


@dataclass(frozen=True)
class WorkloadJob:
    """One size of one application on one class."""

    application: str
    nodes: int
    node_class: str
    walltime: int

    @property
    def name(self) -> str:
        """Short form such as ``namd-xe-1368``."""
        return f"{self.application.lower()}-{self.node_class}-{self.nodes}"


def load_workload(path: str | Path | None = None) -> Workload:
    """Read a workload table, by default Table II of Enos 2014.

    Raises
    ------
    InputError
        If the file cannot be used.
    """
    shipped = data_folder("instances") / "workloads" / "enos2014_table2.json"
    return read_document(path or shipped, Workload, WORKLOAD_SCHEMA)


def workload_jobs(workload: Workload) -> list[WorkloadJob]:
    """Return every size x class of a table, in table order, with its longest time limit."""
    return [
        WorkloadJob(row.application, nodes, node_class, 60 * row.minutes[1])
        for row in workload.rows
        for nodes in row.nodes
        for node_class in row.classes
    ]


def workload_queue(workload: Workload) -> list[Request]:
    """Return a queue with one request for every job of a table."""
    return [
        Request(
            id=job.name,
            nodes=job.nodes,
            node_class=job.node_class,
            application=job.application,
            walltime=job.walltime,
        )
        for job in workload_jobs(workload)
    ]
