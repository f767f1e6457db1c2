"""Slurm's topology.conf and its node states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_files import written
from topoplace.errors import InputError
from topoplace.snapshot import tree_of
from topoplace.snapshot.readers.slurm import (
    NodeUse,
    read_slurm_nodes,
    read_topology_conf,
    topology_conf_of,
)
from topoplace.snapshot.readers.slurm_jobs import read_slurm_jobs
from topoplace.snapshot.schema import SwitchModel, TreeModel


def test_keys_comments_and_continued_lines(tmp_path):
    text = r"""
# the leaves
switchname=s0 NODES=n[0-3] LinkSpeed=100   # the first
SwitchName=s1 \
    Nodes="n[4-7]"
SWITCHNAME = top  Switches=s[0-1]
"""
    model = read_topology_conf(written(tmp_path, text, "my tree.conf"))
    assert model.name == "my-tree"
    assert [switch.name for switch in model.switches] == ["s0", "s1", "top"]
    assert tree_of(model).node_names == tuple(f"n{k}" for k in range(8))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ": expected at least one line SwitchName"),
        ("# nothing\n\n", ": expected at least one line SwitchName"),
        ("\nSwitchName=a Nodes=n[0-3\n", ": line 2, switch a: expected a host list"),
        (
            "SwitchName=a Nodes=n[3-1]\n",
            ": line 1, switch a: expected ranges that ascend in n[3-1]",
        ),
        (
            "SwitchName=a Nodes=n1\n\nSwitchName=b Nodes=n[0-3]\n",
            ": line 3, switch b: expected each node on one leaf, found 'n1'",
        ),
        (
            "SwitchName=a Nodes=n[1,1]\n",
            ": line 1, switch a: expected each node on one leaf, found 'n1'",
        ),
        (
            "SwitchName=a Nodes=n1\nSwitchName=b Switches=a,c\n",
            ": line 2, switch b: expected a switch that is described, found 'c'",
        ),
        (
            "SwitchName=a Nodes=n1\nSwitchName=b Switches=c,a\nSwitchName=c \\\n Switches=b\n",
            ": line 3, switch c: expected no cycle of switches, found 'b'",
        ),
        ("SwitchName=a Switches=a\nSwitchName=b Nodes=n1", ": line 1, switch a: expected no cycle"),
        ("SwitchName=a Nodes=\n", ": line 1, switch a: expected at least one node"),
        ("SwitchName=a Nodes= LinkSpeed=5\n", ": line 1, switch a: expected at least one node"),
        (
            'SwitchName=a Nodes=n1\nSwitchName=b Switches=""',
            ": line 2, switch b: expected at least one",
        ),
        (
            "SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n",
            ": line 2, switch a: expected each switch once (it stands at line 1 too)",
        ),
        (
            "SwitchName=a Nodes=n1 Switches=b\n",
            ": line 1, switch a: expected either Nodes= or Switches=",
        ),
        ("SwitchName=a Node=n1\n", ": line 1, switch a: expected either Nodes= or Switches="),
        ("SwitchName=a Nodes=n1 Nodes=n2\n", ": line 1: expected each setting once"),
        ("Nodes=n1\n", ": line 1: expected SwitchName=, the name of one switch"),
        ("SwitchName=s[0-1] Nodes=n1\n", ": line 1: expected SwitchName=, the name of one switch"),
        (f"SwitchName={'s' * 129} Nodes=n1\n", ": line 1: expected SwitchName="),
        ("SwitchName=a Nodes=n1 nonsense\n", ": line 1: expected settings such as"),
        ("SwitchName=a Nodes=n[1-9999999]\n", ": line 1, switch a: expected at most"),
    ],
)
def test_topology_errors_name_file_line_and_switch(tmp_path, text, expected):
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_topology_conf(path)
    assert str(caught.value).startswith(f"{path}{expected}")


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\xff\xfe")
    for read in (read_topology_conf, read_slurm_nodes, read_slurm_jobs):
        with pytest.raises(InputError, match="a text file"):
            read(path)
        with pytest.raises(InputError, match="a file that exists"):
            read(tmp_path / "none")


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=1, max_size=5), min_size=1, max_size=6))
def test_topologies_survive_the_way_out_and_back(tmp_path_factory, leaves):
    path = tmp_path_factory.mktemp("topology") / "a.conf"
    switches = [
        SwitchModel(name=f"s{k}", nodes=",".join(f"r{k}n{n:04}" for n in dict.fromkeys(nodes)))
        for k, nodes in enumerate(leaves)
    ]
    top = SwitchModel(name="top", switches=",".join(switch.name for switch in switches))
    before = TreeModel(kind="tree", name="a", switches=[*switches, top])
    path.write_text(topology_conf_of(before))
    after = read_topology_conf(path)
    assert after.switches == before.switches


@pytest.mark.parametrize(
    ("state", "use"),
    [
        ("IDLE", NodeUse.OPEN),
        ("IDLE+PLANNED", NodeUse.OPEN),
        ("IDLE+CLOUD+POWERED_DOWN", NodeUse.OPEN),
        ("ALLOCATED", NodeUse.HELD),
        ("MIXED+CLOUD", NodeUse.HELD),
        ("IDLE+COMPLETING", NodeUse.HELD),
        ("DOWN", NodeUse.CLOSED),
        ("DOWN*", NodeUse.CLOSED),
        ("IDLE*", NodeUse.CLOSED),
        ("IDLE+NOT_RESPONDING", NodeUse.CLOSED),
        ("IDLE+DRAIN", NodeUse.CLOSED),
        ("ALLOCATED+DRAIN", NodeUse.CLOSED),
        ("IDLE+MAINT+RESERVED", NodeUse.CLOSED),
        ("IDLE+FAIL", NodeUse.CLOSED),
        ("UNKNOWN", NodeUse.CLOSED),
    ],
)
def test_node_states(tmp_path, state, use):
    path = written(tmp_path, f"NodeName=n1 Arch=x State={state} Reason=a State=IDLE\n\n")
    assert read_slurm_nodes(path) == {"n1": use}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ": expected at least one line NodeName="),
        ("\nn1 idle\n", ": line 2: expected NodeName=... State=..."),
        ("NodeName=n1 Arch=x\n   State=IDLE\n", ": line 1: expected NodeName=... State=..."),
        ("NodeName=n1 State=IDLE\nNodeName=n1 State=DOWN\n", ": line 2: expected each node once"),
    ],
)
def test_bad_node_states(tmp_path, text, expected):
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_slurm_nodes(path)
    assert str(caught.value).startswith(f"{path}{expected}")
