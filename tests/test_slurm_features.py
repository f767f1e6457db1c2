"""Slurm: features of nodes, joined by & and |, in parentheses, and counted."""

from __future__ import annotations

from typing import Any

import pytest

import topoplace as tp
from test_slurm_options import entry, holds, number, snapshot_of
from test_slurm_sharing import NODE, by_node, started, whole
from topoplace.machine.hostlist import expand_host_list
from topoplace.snapshot.hierarchy_state import prepare_hierarchy

HAVE = ["r1,ib", "r1,ib", "r1,eth", "r1,eth", "r2,ib", "r2,ib", "r2,ib", "r2,ib"]


def featured(jobs: list[dict[str, Any]], folder: Any, **more: str) -> tp.Model:
    """Return a snapshot of eight nodes, n0 to n7, with features as in `HAVE`."""
    nodes = ""
    for k, own in enumerate(HAVE):
        line = NODE.format(name=f"n{k}", cpus=0, state="IDLE", memory=0, gres="(null)", threads=1)
        nodes += line.replace("Features=(null)", f"Features={own}")
    return snapshot_of(folder, jobs, nodes=nodes, **more)


# what slurmctld 24.11 found for `sbatch --test-only --exclusive -C FEATURES` and most nodes
FOUND = {
    "r1": "0123",
    "eth|(r1&ib)": "0123",
    "(ib|eth)&r1": "0123",
    "ib&r2|r1": "01234567",
    "r1|r2&ib": "014567",
    "eth|r1&ib": "01",
    "(eth|r2)&ib": "4567",
    "r1&ib|r2": "014567",
    "(r1&eth)|(r2&ib)": "234567",
    "r2|(eth&ib)": "4567",
    "r1|eth&ib|r2": "014567",
}


@pytest.mark.parametrize("features", FOUND)
def test_features_are_joined_from_left_to_right_as_slurm_does(features, tmp_path):
    model = featured([entry(1, features=features)], tmp_path)
    assert holds(model) == {}
    (request,) = prepare_hierarchy(model.snapshot).requests
    (part,) = request.parts
    every = range(len(HAVE)) if part.eligible is None else part.eligible.mask.nonzero()[0]
    assert "".join(map(str, every)) == FOUND[features]


COUNTS = [
    # nodes, features, how many of n0-n1, n2-n3 and n4-n7 start
    (6, "[r1*2&r2*4]", lambda a, b, c: (a + b, c) == (2, 4)),
    (4, "eth*1", lambda _, b, __: b >= 1),
    (4, "[eth*2]", lambda _, b, __: b == 2),
    (4, "[(ib|eth)*1&r1*3]", lambda a, b, _: a + b >= 3),
    (8, "[r1*4&ib*4]", lambda a, b, c: (a, b, c) == (2, 2, 4)),
    (2, "[eth*2]", lambda _, b, __: b == 2),
]


@pytest.mark.parametrize(("nodes", "features", "right"), COUNTS)
def test_numbers_of_nodes_with_features_are_parts_of_a_job(nodes, features, right, tmp_path):
    model = featured([whole(1, nodes, features=features)], tmp_path)
    assert holds(model) == {}
    hosts = expand_host_list(started(model)["1"].replace(" ", ","))
    at = [int(host[1:]) for host in hosts]
    assert right(*(sum(low <= k < end for k in at) for low, end in ((0, 2), (2, 4), (4, 8))))


def test_a_number_of_nodes_that_are_not_free_keeps_a_job_waiting(tmp_path):
    jobs = [
        entry(9, job_state=["RUNNING"], nodes="n[2-3]"),
        whole(1, 4, features="eth*1"),
        whole(2, 4, features="[r1*2&r2*2]"),
    ]
    assert started(featured(jobs, tmp_path)).keys() == {"2"}


@pytest.mark.parametrize(
    "fields",
    [
        {"features": "[r1*1&r2*2]"},  # Slurm gives it three
        {"features": "[r1*1&eth*0]"},
        {"features": "r1*1&r2*1"},
        {"features": "((r1|r2)&eth)|ib"},
        {"features": "[r1|r2&ib]"},
        {"features": "eth*1", "required_nodes": "n1"},
        {"features": "eth*1", "required_switches": 1},
        {"features": "eth*3"},
    ],
)
def test_other_numbers_and_brackets_hold_a_job(fields, tmp_path):
    model = featured([whole(1, 2, **fields), whole(2, 1)], tmp_path)
    assert "features" in holds(model)["1"]
    assert started(model).keys() == {"2"}


def test_parts_of_a_job_that_shares_nodes_cannot_meet_on_one(tmp_path):
    model = featured([by_node(1, 2, features="[r1*1&r2*1]")], tmp_path)
    assert holds(model) == {}
    assert [part.spread.size for part in model.snapshot.queue[0].parts] == [1, 1]
    for features in ("[r1*1&ib*1]", "eth*1"):
        assert holds(featured([by_node(1, 2, features=features)], tmp_path)) == {"1": ["features"]}


BLOCKS = "BlockName=b0 Nodes=n[0-3]\nBlockName=b1 Nodes=n[4-7]\nBlockSizes=4\n"


@pytest.mark.parametrize(
    ("fields", "option"),
    [
        ({"features": "ib"}, None),
        ({"required_nodes": "n[4-7]"}, "required_nodes"),
        ({"features": "[ib*4&eth*1]"}, "features"),
    ],
)
def test_parts_of_a_job_of_segments_are_those_of_its_segments(fields, option, tmp_path):
    job = whole(1, 5, segment_size=number(2), **fields)
    model = featured([job], tmp_path, topology=BLOCKS)
    assert holds(model) == ({} if option is None else {"1": [option]})
    (request,) = model.snapshot.queue
    assert [part.nodes for part in request.parts] == [4, 1]
    if option is None:
        assert not {"n2", "n3"} & {*expand_host_list(started(model)["1"].replace(" ", ","))}
