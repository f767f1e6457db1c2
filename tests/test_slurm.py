"""Slurm's files: topology.conf, node states, both listings of jobs, and a cluster as a snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bending import bent
from mistakes import MISTAKES, lines_said
from real_files import real_file
from topoplace.cli import run
from topoplace.errors import ExitCode, InputError
from topoplace.formats.cray import read_cray_neighbours
from topoplace.formats.slurm.jobs import read_slurm_jobs
from topoplace.formats.slurm.nodes import NodeUse, read_slurm_nodes, read_slurm_partitions
from topoplace.formats.slurm.reservations import read_slurm_reservations
from topoplace.formats.slurm.topology import read_slurm_topology
from topoplace.formats.swf import read_swf
from topoplace.machine.hostlist import expand_host_list
from topoplace.options import ConvertOptions
from topoplace.snapshot.convert import converted
from topoplace.snapshot.held import NOT_SEEN
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.machines import load_any, load_machine
from topoplace.snapshot.schema import TreeObjective

TOPOLOGY = """\
SwitchName=s0 Nodes=n[0-3]
SwitchName=s1 Nodes=n4,n[5-7]
SwitchName=top Switches=s[0-1]
"""
LISTINGS = Path(__file__).parent / "slurm"
ENTRY = json.loads((LISTINGS / "squeue.json").read_text())["jobs"][0]
HEADER = "JOBID|STATE|NODES|NODELIST|COMMENT|PRIORITY|TIME_LIMIT|START_TIME|SUBMIT_TIME"


def written(folder: Path, text: str, name: str = "file") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def job_line(**fields: object) -> str:
    names = ("id", "state", "nodes", "hosts", "comment", "priority", "limit", "start", "submitted")
    usual = ["1", "PENDING", "2", "", "(null)", "10", "UNLIMITED", "N/A", "2026-03-01T10:00:00"]
    return "|".join(
        str(value) for value in (dict(zip(names, usual, strict=True)) | fields).values()
    )


# ---- What is read --------------------------------------------------------------------------------


def test_keys_comments_and_continued_lines(tmp_path):
    text = r"""
# the leaves
switchname=s0 NODES=n[0-3] LinkSpeed=100   # the first
SwitchName=s1 \
    Nodes="n[4-7]"
SWITCHNAME = top  Switches=s[0-1]
"""
    model = read_slurm_topology(written(tmp_path, text, "my tree.conf"))
    assert model.name == "my-tree"
    assert [switch.name for switch in model.switches] == ["s0", "s1", "top"]
    assert hierarchy_of(model).host_names == tuple(f"n{k}" for k in range(8))


@pytest.mark.parametrize(
    ("use", "states"),
    [
        (NodeUse.OPEN, "IDLE IDLE+PLANNED IDLE+CLOUD+POWERED_DOWN"),
        (NodeUse.HELD, "ALLOCATED MIXED+CLOUD IDLE+COMPLETING"),
        (NodeUse.CLOSED, "DOWN DOWN* IDLE* IDLE+NOT_RESPONDING IDLE+DRAIN ALLOCATED+DRAIN"),
        (NodeUse.CLOSED, "IDLE+MAINT+RESERVED IDLE+FAIL UNKNOWN"),
    ],
)
def test_node_states(tmp_path, use, states):
    for state in states.split():
        path = written(tmp_path, f"NodeName=n1 Arch=x State={state} Reason=a State=IDLE\n\n")
        assert {name: node.use for name, node in read_slurm_nodes(path).items()} == {"n1": use}


def test_a_node_whose_state_or_number_is_not_understood_is_named(tmp_path):
    line = "NodeName=n1 State={} RealMemory={}\n"
    for state, memory, odd in (
        ("IDEL", "1000", "State=IDEL"),
        ("IDLE+NEW", "1000", "State=IDLE+NEW"),
        ("IDLE", "125G", "RealMemory=125G"),
        ("DOWN*+DRAIN", "1000", ""),
        ("IDLE+CLOUD+POWERED_DOWN", "N/A", ""),
    ):
        (node,) = read_slurm_nodes(written(tmp_path, line.format(state, memory))).values()
        assert node.odd == odd


WHOLE = "NodeName={} CoresPerSocket=8 State=IDLE+DRAIN Partitions=p CfgTRES=cpu=8 AllocTRES=\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (WHOLE.format("n1") + "NodeName=n2 CoresPerSocket=8 State=IDLE", 2),
        (WHOLE.format("n1") + "NodeName=n2 CoresPerSocket=8 State=IDLE\n", 2),
        ("NodeName=n1 State=IDLE Partitions=p\nNodeName=n2 State=IDLE\n", 2),
        ("NodeName=n1 CoresPerSocket=8 State=IDLE", 1),
    ],
)
def test_nodes_of_a_listing_that_was_cut_off_are_not_open(text, line, tmp_path):
    with pytest.raises(InputError, match=f"line {line}: expected a whole record"):
        read_slurm_nodes(written(tmp_path, text))


def test_jobs_of_both_forms_are_the_same():
    text, listed = (read_slurm_jobs(LISTINGS / f"squeue.{form}") for form in ("txt", "json"))
    assert text.running == listed.running
    held = [{one.request: one.option for one in jobs.left_out} for jobs in (text, listed)]
    of_queue = {"5": "hold", "7_2": "array_throttle", "7_4": "array_throttle"}
    assert held == [of_queue | {"6+1": "het_job"}] * 2  # which runs: what it may not leave
    seconds = ((26 * 60) + 3) * 60 + 4
    # squeue --json rounds limits to minutes
    assert [job.walltime for job in text.queue] == [7200, 7200, 7200, None, seconds, None, None]
    rounded = [job.model_copy(update={"walltime": (job.walltime or 0) // 60}) for job in text.queue]
    assert rounded == [
        job.model_copy(update={"walltime": (job.walltime or 0) // 60}) for job in listed.queue
    ]
    assert [job.id for job in text.queue] == ["7_1", "7_2", "7_4", "8", "9", "10", "5"]
    assert [job.submitted for job in text.queue] == [0, 0, 0, 0, 60, 0, 0]
    assert [job.id for job in text.running] == ["3", "6+1"]
    uses = {job.id: job.patterns or [] for job in (*text.queue, *text.running)}
    told = {job: [(u.pattern, u.share, u.message_bytes) for u in uses[job]] for job in uses}
    assert told["10"] == [("rhvd", 60, 1024), ("rd", 30, 1)]
    assert told["3"] == [("ring", 100, 1)]
    assert told["8"] == told["9"] == []
    assert [job.communication for job in text.queue[3:6]] == ["none", "strict", "strict"]


# ---- What is said of bad files -------------------------------------------------------------------


def said_of(read: Callable[[Path], object], path: Path) -> list[str]:
    """Return what a reader says of a bad file, after its name."""
    first, *others = lines_said(read, path)
    assert first.startswith(f"{path}: ")
    return [first.removeprefix(f"{path}: "), *others]


@pytest.mark.parametrize(("text", "lines"), MISTAKES["Switches"])
def test_bad_topologies(tmp_path, text, lines):
    path = written(tmp_path, text.replace("/", "\n"))
    assert said_of(read_slurm_topology, path) == lines


@pytest.mark.parametrize(("text", "lines"), MISTAKES["Nodes"])
def test_bad_node_states(tmp_path, text, lines):
    assert said_of(read_slurm_nodes, written(tmp_path, text.replace("/", "\n"))) == lines


@pytest.mark.parametrize(("changes", "lines"), MISTAKES["Job lines"])
def test_bad_job_lines(tmp_path, changes, lines):
    text = "\n".join([HEADER, job_line(), job_line(**bent({"id": 2}, changes))])
    assert said_of(read_slurm_jobs, written(tmp_path, text)) == lines


@pytest.mark.parametrize(("changes", "lines"), MISTAKES["Job entries"])
def test_bad_job_entries(tmp_path, changes, lines):
    text = json.dumps({"jobs": [bent(ENTRY, changes)]})
    assert said_of(read_slurm_jobs, written(tmp_path, text)) == lines


def test_names_too_long_and_empty_files(tmp_path):
    path = written(tmp_path, f"SwitchName={'s' * 129} Nodes=n1")
    assert said_of(read_slurm_topology, path)[0].startswith("line 1: expected SwitchName=")
    for read in (read_slurm_topology, read_slurm_nodes):
        assert said_of(read, written(tmp_path, "\n"))[0].startswith("expected at least one line")


def test_files_of_another_command_are_named(tmp_path):
    jobs = json.dumps({"jobs": []})
    takes = "topoplace convert --from slurm takes"
    expected = "expected NodeName=... State=..., as scontrol show nodes -o writes"
    assert said_of(read_slurm_nodes, written(tmp_path, jobs)) == [
        f"{expected}, found Slurm's jobs, which --jobs of {takes}"
    ]
    listing = "JOBID|STATE|NODES"
    default = "             JOBID PARTITION     NAME"
    for text, what in {
        jobs: "Slurm's jobs, which --jobs",
        listing: "Slurm's jobs, which --jobs",
        default: "Slurm's jobs, which --jobs",
        "JobId=1 JobState=PENDING": "Slurm's jobs, which --jobs",
        "NodeName=n1 State=IDLE": "Slurm's node states, which --nodes",
        "PartitionName=p State=UP": "Slurm's partitions, which --partitions",
        "ReservationName=r State=ACTIVE": "Slurm's reservations, which --reservations",
    }.items():
        assert said_of(load_any, written(tmp_path, text))[0].endswith(f"found {what} of {takes}")


def test_a_listing_that_is_cut_off_or_empty_is_refused(tmp_path):
    cut = written(tmp_path, '{"jobs": [\n{"job_id": 1, "comm')
    assert said_of(read_slurm_jobs, cut) == [
        "expected a JSON document (Unterminated string starting at line 2)"
    ]
    for read in (read_slurm_jobs, read_slurm_nodes, read_slurm_partitions, read_slurm_reservations):
        assert said_of(read, written(tmp_path, "\n"))[0].endswith("found an empty file")
    assert read_slurm_jobs(written(tmp_path, HEADER)).queue == ()
    assert read_slurm_jobs(written(tmp_path, "No jobs in the system\n")).queue == ()


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"jobs": 1}', '{"jobs": [1]}', "61 p wrap user PD 0:00 40 (Resources)"]
)
def test_no_list_of_jobs(tmp_path, text):
    assert "expected" in said_of(read_slurm_jobs, written(tmp_path, text))[0]


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\xff\xfe")
    readers = (
        read_slurm_topology,
        read_slurm_nodes,
        read_slurm_jobs,
        read_cray_neighbours,
        read_swf,
    )
    for read in readers:
        with pytest.raises(InputError, match="text in UTF-8, found UTF-16"):
            read(path)
        with pytest.raises(InputError, match="a file that exists"):
            read(tmp_path / "none")


# ---- A cluster as a snapshot, and topologies as machines -----------------------------------------


def cluster(folder: Path, states: dict[str, str], *lines: str) -> list[str]:
    """Write a cluster's files and return the options that name them."""
    nodes = "".join(f"NodeName={name} State={state}\n" for name, state in states.items())
    files = {
        "topology": written(folder, TOPOLOGY, "topology.conf"),
        "nodes": written(folder, nodes, "nodes.txt"),
        "jobs": written(folder, "\n".join(lines), "squeue.txt"),
    }
    return [part for option, path in files.items() for part in (f"--{option}", str(path))]


def test_what_is_closed_and_left_out(tmp_path, capsys):
    states = {f"n{k}": "IDLE" for k in range(6)}
    states |= {"n0": "ALLOCATED", "n1": "ALLOCATED+DRAIN", "n2": "MIXED", "n3": "DOWN*"}
    options = cluster(
        tmp_path,
        states | {"login": "IDLE"},
        job_line(id=1, state="RUNNING", hosts="n[0-1]", comment="pattern=none"),
        job_line(id=2, nodes=9),
        job_line(id=3, nodes=8),
        job_line(id=4, priority=0),
    )
    out = tmp_path / "out.json"
    assert run(["convert", "--from", "slurm", *options, "-o", str(out)]) == 0
    state = load_any(out, TreeObjective.CONTENTION)
    assert state.snapshot.down == "n[1-3,6-7]"
    assert [state.machine.host_names[k] for k in state.free.nonzero()[0]] == ["n4", "n5"]
    assert (state.busy.tolist(), state.comm.tolist()) == ([2, 0], [0, 0])
    assert [request.id for request in state.requests] == ["3"]
    assert capsys.readouterr().out.splitlines() == [
        "1 job running, 2 queued",
        "nodes closed: 2",
        "nodes closed, with a job that is not listed: 1",
        "nodes closed, their state not told: 2",
        "nodes left out, on no switch: 1",
        "jobs left out, larger than the machine: 1 (2)",
        "not seen, as squeue's listing has no column PARTITION, REASON, FEATURES, DEPENDENCY, "
        "TRES_PER_NODE: what these keep jobs from (squeue --json has all)",
        "not seen, without --partitions, --reservations: limits and states of partitions, "
        "reservations to come",
        "1 of 2 requests held (hold 1; see place --ignore); "
        "not seen in this listing: switches, reservation, required nodes, excluded nodes, "
        "GRES of a job or a task, CPUs, memory, licenses, contiguous nodes, shared nodes, "
        "ends of running jobs, plans; not modelled: order of Slurm's priorities",
        f"written: {out}",
    ]


def test_without_output_the_snapshot_goes_to_stdout(tmp_path, capsys):
    options = cluster(tmp_path, {"n0": "IDLE"}, job_line())
    assert run(["convert", "--from", "slurm", "--to", "snapshot", *options]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["down"] == "n[1-7]"
    assert "1 queued" in said.err
    assert run(["convert", "--from", "slurm", *options, "--json"]) == ExitCode.BAD_INPUT


def test_jobs_that_do_not_fit_the_topology(tmp_path, capsys):
    options = cluster(tmp_path, {}, job_line(state="RUNNING", hosts="n[7-8]"))
    out = tmp_path / "out.json"
    told = ["convert", "--from", "slurm", *options[:2], *options[4:], "-o", str(out)]
    assert run(told) == ExitCode.BAD_INPUT
    said = capsys.readouterr().err
    assert "job 1: expected nodes on a switch, found 'n8'" in said
    assert "squeue.txt" in said
    assert not out.exists()


def test_a_node_of_several_jobs_is_held_by_the_first(tmp_path, capsys):
    lines = [job_line(id=k, state="RUNNING", nodes=1, hosts="n1") for k in (1, 2)]
    lines.append(job_line(id=3, state="RUNNING", hosts="n[1-2]"))
    options = cluster(tmp_path, {}, *lines)
    out = tmp_path / "out.json"
    told = ["convert", "--from", "slurm", *options[:2], *options[4:], "-o", str(out)]
    assert run(told) == 0
    assert [(job.id, job.nodes) for job in load_any(out).snapshot.running] == [
        ("1", "n1"),
        ("3", "n2"),
    ]
    assert "nodes shared by several jobs, each held by the first: 1" in capsys.readouterr().out


def test_a_topology_becomes_a_machine_and_back(tmp_path):
    topology = written(tmp_path, TOPOLOGY, "topology.conf")
    machine = tmp_path / "machine.json"
    made = converted(topology, "slurm-topology")
    assert made.notes == ("8 nodes on 2 leaves below 1 switch",)
    machine.write_text(made.text)
    assert converted(machine, "machine", "slurm-topology").text == TOPOLOGY
    assert load_machine(str(machine)) == load_machine(str(topology))


def test_the_real_cluster_reads_the_same_from_both_listings(tmp_path):
    states = []
    for listing in ("squeue.json", "squeue.txt"):
        out = tmp_path / f"{listing}.snapshot"
        options = ConvertOptions(
            topology=real_file("slurm_real/topology.conf"),
            nodes=real_file("slurm_real/nodes.txt"),
            jobs=real_file(f"slurm_real/{listing}"),
        )
        out.write_text(converted(None, "slurm", None, options).text)
        states.append(load_any(out, TreeObjective.CONTENTION))
    one, other = states
    # the listing of columns does not say when jobs end, nor what is planned
    endless = [job.model_copy(update={"ends": None}) for job in one.snapshot.running]
    unplanned = [job.model_copy(update={"planned": None}) for job in one.snapshot.queue]
    update = {"running": endless, "queue": unplanned}
    seen = [own for own in other.snapshot.left_out if own.option != NOT_SEEN]
    assert one.snapshot.model_copy(update=update) == other.snapshot.model_copy(
        update={"left_out": seen}
    )
    assert [job.id for job in one.running] == ["44", "52", "59", "60", "64"]
    assert [request.id for request in one.requests] == ["61", "62", "63"]
    assert {request.nodes for request in one.requests} == {40}
    assert [job.patterns[0].pattern for job in one.snapshot.running if job.patterns] == ["rhvd"]
    lines = options.nodes.read_text().splitlines()  # looked at with nothing but string search
    closed = [line.split()[0][9:] for line in lines if "DRAIN" in line or "State=DOWN" in line]
    held = {line.split()[0][9:] for line in lines if "State=ALLOCATED" in line}
    assert len(closed) == 2
    assert expand_host_list(one.snapshot.down) == closed
    assert {n for job in one.snapshot.running for n in expand_host_list(job.nodes)} == held
