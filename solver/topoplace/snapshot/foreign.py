"""Files of kinds that topoplace does not read: what they are, and what comes nearest.

`read_bytes` looks here first, so that each command and function names such a file in one line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LOOKED_AT = 1 << 16  # bytes at the beginning
_TAIL = 1 << 12  # bytes at the end, where Slurm says which tool has written a document

_OURS = re.compile(rb'"schema"\s*:\s*"topoplace\.|"apiVersion"\s*:')


@dataclass(frozen=True)
class Foreign:
    """A kind of file that is not read.

    Attributes
    ----------
    what
        What it is: ``a Flux resource set``.
    nearest
        What can be read instead.
    """

    what: str
    nearest: str
    pattern: re.Pattern[bytes]

    @property
    def found(self) -> str:
        """What a message says."""
        return f"{self.what} (nearest: {self.nearest})"


_LINES = r"(?:[ \t]*(?:\#[^\n]*)?\n|[ \t]*\w+[ \t]*=[^\n]*\n)*[ \t]*"
"""Lines of comments and settings, and the beginning of another one."""

_SWITCHES = "a JSON object of nodes and their switches, convert --from node-switch"
_SNAPSHOT = "a snapshot, docs/reference/formats.md"
_SLURM = "squeue --json and scontrol show nodes -o, or topoplace snapshot --slurm"
_KUBE = "kubectl get -o yaml, or topoplace snapshot --kube"
_GRAPH = "an edge list or a matrix, map --graph"
_FABRIC = "ibnetdiscover, convert --from ibnetdiscover"
_NODE = "lstopo --of xml, convert --from hwloc"
_LOG = "a job log in the Standard Workload Format, replay"
_ARRAY = "a CSV of it by numpy.savetxt, or topoplace.map in Python, which takes arrays"
_UNPACK = "what is inside, unpacked"
_CONFIG = "topology.conf, or scontrol show topology"


def _rows(text: str) -> tuple[Foreign, ...]:
    """Return a table of lines ``WHAT | NEAREST | PATTERN``, of texts that begin so."""
    named = globals()
    found = []
    for line in text.strip().splitlines():
        what, nearest, pattern = (part.strip() for part in line.split(" | ", 2))
        begins = rb"\A\s*(?:" + pattern.replace("LINES", _LINES).encode() + rb")"
        found.append(Foreign(what, named[nearest], re.compile(begins, re.MULTILINE)))
    return tuple(found)


def _documents(text: str) -> tuple[Foreign, ...]:
    """Return a table of lines ``WHAT | NEAREST | PATTERNS``, of JSON in which all patterns are."""
    found = []
    for line in text.strip().splitlines():
        what, nearest, patterns = (part.strip() for part in line.split(" | ", 2))
        inside = "".join(rf"(?=[\s\S]*?(?<!\\){one})" for one in patterns.split(" & "))
        pattern = re.compile(rb"\A" + inside.encode())
        found.append(Foreign(what, globals()[nearest], pattern))
    return tuple(found)


_JSON = _documents(
    r"""
a Flux resource set | _SWITCHES | "R_lite"\s*:
a Flux resource graph | _SWITCHES | "graph"\s*:\s*\{\s*"(nodes|edges)"\s*:
a Flux jobspec | _SNAPSHOT | "resources"\s*: & "tasks"\s*: & "attributes"\s*:
PBS's nodes or jobs | _SNAPSHOT | "pbs_version"\s*:
Slurm's accounting (sacct --json) | _SLURM | "command"\s*:\s*\[\s*"sacct"
Slurm's sinfo --json | _SLURM | "sinfo"\s*:\s*\[
Slurm's nodes as JSON | _SLURM | \{\s*"nodes"\s*:\s*\[\s*\{\s*"architecture"
Slurm's partitions as JSON | _SLURM | \{\s*"partitions"\s*:\s*\[\s*\{
a graph of NetworkX | _GRAPH | "directed"\s*: & "multigraph"\s*:
a trace of a profiler | _GRAPH | "traceEvents"\s*:
a workload of Batsim | _LOG | "nb_res"\s*: & "profiles"\s*:
a notebook | _SNAPSHOT | "nbformat"\s*:
a Nomad job | _SNAPSHOT | "Job"\s*:\s*\{ & "TaskGroups"\s*:
""".replace("^", "")
)

_TEXT = _rows(r"""
a Flux jobspec | _SNAPSHOT | (?:---\n)?version: \d+\nresources:
pbsnodes's list of nodes | _SNAPSHOT | \S+\n[ \t]+Mom\s=
PBS's jobs (qstat) | _SNAPSHOT | Job [Ii]d(?::\s|\s+Name\s+User)
LSF's hosts (bhosts) | _SNAPSHOT | HOST_NAME\s+STATUS
LSF's jobs (bjobs) | _SNAPSHOT | JOBID\s+USER\s+STAT\s+QUEUE
Grid Engine's jobs (qstat) | _SNAPSHOT | job-ID\s+prior\s+name
Grid Engine's hosts (qhost) | _SNAPSHOT | HOSTNAME\s+ARCH\s+NCPU
HTCondor's queue or machines | _SNAPSHOT | -- Schedd:|Name\s+OpSys\s+Arch\s+State|MyType\s*=\s*"
a slurm.conf | _CONFIG | LINES(?:ClusterName|SlurmctldHost|ControlMachine)\s*=
scontrol show config | _CONFIG | Configuration data as of
a gres.conf | _CONFIG | LINES(?:AutoDetect=|(?:NodeName=\S+\s+)?Name=\w+\s+\w+=)
Slurm's sinfo | _SLURM | PARTITION\s+AVAIL\s+TIMELIMIT|NODELIST\s+NODES\s+PARTITION
Slurm's accounting (sacct) | _SLURM | JobID(?:\|JobName|\s+JobName\s+Partition)
a batch script | _SLURM | \#![^\n]*\n(?:[^\n]*\n){0,200}?\#(?:SBATCH|PBS|BSUB|\$|flux:)
a program | _SNAPSHOT | \#!
a kubeconfig | _KUBE | \w+:(?=[\s\S]*?^kind: Config\b)(?=[\s\S]*?^contexts:)
kubectl describe | _KUBE | Name:\s+\S+\n(?:Roles|Namespace|Labels|Priority):
an empty answer of kubectl | _KUBE | No resources found|error: the server doesn't have
a file of Docker Compose | _KUBE | services:\s*\n\s+[\w-]+:\s*\n\s+(?:image|build):
a Nomad job | _SNAPSHOT | job\s+"[^"]+"\s*\{
a configuration of Terraform | _SNAPSHOT | (?:terraform|provider "\w+"|resource "\w+" "\w+")\s*\{
Ray's status | _SNAPSHOT | =+ Autoscaler status
iblinkinfo's list of links | _FABRIC | (?:CA|Switch):?\s[^\n]*\n(?:[^\n]*\n){0,3}?[^\n]*==\(
ibnetdiscover's list of ports | _FABRIC | (?:SW|CA)\s+\d+\s+\d+\s+0x
nvidia-smi's matrix of links | _NODE | (?:\x1b\[\d+m)?\s*GPU0\s+(?:GPU1|CPU Affinity|NIC0)
lstopo's text | _NODE | Machine \(\d+
a topology of NCCL | _NODE | (?:<\?xml[^>]*>\s*)?<(?:system|graphs) version=
a platform of SimGrid | _SWITCHES | (?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE platform[^>]*>\s*)?<platform\s
a graph in GraphML or GEXF | _GRAPH | (?:<\?xml[^>]*>\s*)?(?:<!--[\s\S]*?-->\s*)?<(?:graphml|gexf)\b
a graph in GML | _GRAPH | (?:Creator[^\n]*\n\s*)?(?:Version[^\n]*\n\s*)?graph\s*\[
a graph of Graphviz | _GRAPH | (?:strict\s+)?(?:di)?graph\b[^\[\n{]*\{
a matrix of Matrix Market | _GRAPH | %%MatrixMarket
a report of mpiP | _GRAPH | @ mpiP
a report of IPM | _GRAPH | (?:<\?xml[^>]*>\s*)?<(?:ipm|ipm_job_profile|task ipm_version)\b
a report of CrayPat | _GRAPH | CrayPat/X
a program of XLA | _GRAPH | HloModule\s
a job log of the Grid Workloads Archive | _LOG | \#\s*GWF\b
a web page | _UNPACK | <!DOCTYPE html|<html\b
a model of MiniZinc | _SNAPSHOT | (?:%[^\n]*\n)*include\s+"[^"]+\.mzn"
a linear program (MPS) | _SNAPSHOT | NAME\b[^\n]*\n\s*(?:OBJSENSE|ROWS)\b
""")

_BINARY = {
    b"PK\x03\x04": "a zip archive, such as npz or xlsx",
    b"\x89HDF\r\n": "an HDF5 file",
    b"PAR1\x15": "a Parquet file",
    b"\x1f\x8b": "a file of gzip",
    b"\xfd7zXZ\x00": "a file of xz",
    b"(\xb5/\xfd": "a file of zstd",
    b"SQLite format 3\x00": "an SQLite database",
    b"%PDF-": "a PDF",
    b"\x89PNG\r\n": "a picture",
    b"\x7fELF": "a program",
    **{bytes([0x80, version]): "a pickle of Python" for version in (2, 3, 4, 5)},
    **{f"BZh{level}1AY".encode(): "a file of bzip2" for level in range(1, 10)},
}


def foreign_kind(content: bytes) -> str | None:
    """Return what a file is that is not read, and what comes nearest; None if it may be read."""
    if content.startswith(b"\x93NUMPY"):
        return f"an array of NumPy (nearest: {_ARRAY})"
    for magic, what in _BINARY.items():
        if content.startswith(magic):
            return f"{what} (nearest: {_UNPACK})"
    head = content[:_LOOKED_AT]
    if head.lstrip()[:1] in (b"{", b"["):
        if _OURS.search(head):
            return None
        head += content[_LOOKED_AT:][-_TAIL:]
        return next((one.found for one in _JSON if one.pattern.search(head)), None)
    return next((one.found for one in _TEXT if one.pattern.search(head)), None)
