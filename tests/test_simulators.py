"""Dragonflies as simulators have them: configurations of CODES, and JSON of SST."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.formats.simulators import read_codes, read_sst
from topoplace.machine.dragonfly import arranged
from topoplace.result.dragonfly import DragonflyModel, network_of

DALLY = """\
LPGROUPS
{
   MODELNET_GRP
   {
      repetitions="36";
      nw-lp="2";   # a server for each terminal
      modelnet_dragonfly_dally="2";
      modelnet_dragonfly_dally_router="1";
   }
}
PARAMS
{
   packet_size="4096";
   modelnet_order=( "dragonfly_dally","dragonfly_dally_router" );
   num_routers="4";
#  num_groups="7";
   num_groups="9";
   num_cns_per_router="2";
   num_global_channels="2";
   local_bandwidth="5.25";
   inter-group-connections="dfdally-72-inter";
}
"""
CUSTOM = DALLY.replace("dragonfly_dally", "dragonfly_custom").replace(
    'num_routers="4";', 'num_router_rows="2"; num_router_cols="3";'
)
OLD = 'LPGROUPS { G { modelnet_dragonfly="4"; dragonfly_router="1"; } } PARAMS { num_routers="8"; }'


def test_dragonflies_of_codes(tmp_path: Path) -> None:
    file, found = tmp_path / "dfly.conf", {}
    for name, text in (("dally", DALLY), ("custom", CUSTOM), ("old", OLD)):
        file.write_text(text)
        model = read_codes(file)
        found[name] = model.groups, model.routers, model.nodes, model.global_ports
    assert found == {"dally": (9, [4], 2, 2), "custom": (9, [2, 3], 2, 2), "old": (33, [8], 4, 4)}
    assert run(["convert", str(file), "--from", "codes", "-o", str(tmp_path / "m.json")]) == 0
    assert tp.Model(tmp_path / "m.json").snapshot.written == read_codes(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DALLY.replace("dragonfly_dally", "dragonfly_plus"), "found dragonfly_plus"),
        (DALLY.replace("dragonfly_dally", "torus"), "LPGROUPS: .*found none"),
        (DALLY.replace('num_routers="4"', 'num_routers="four"'), "num_routers: .*found 'four'"),
        (CUSTOM.replace('num_router_cols="3";', ""), "num_router_cols: expected a number"),
        (DALLY.replace('num_groups="9"', 'num_groups="10"'), "global links between any two"),
        (DALLY.replace("packet_size", 'num_planes="2"; packet_size'), "num_planes: expected 1"),
    ],
)
def test_other_files_of_codes_are_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "dfly.conf"
    file.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        read_codes(file)
    assert "dfly.conf" in str(caught.value)
    assert "\n" not in str(caught.value)


def sst(tmp_path: Path, **params: Any) -> DragonflyModel:
    """Return the dragonfly of a file as SST writes it; a link map stands at the first router."""
    first = {name: params.pop(name) for name in ("global_link_map",) if name in params}
    own = {"hosts_per_router": 2, "routers_per_group": 4, "intergroup_links": 1, "num_groups": 9}
    texts = {name: str(value) for name, value in (own | params).items() if value is not None}
    part = {"slot_name": "topology", "type": "merlin.dragonfly", "params": first}
    document = {"global_params": {"params_topo": texts}, "components": [{"subcomponents": [part]}]}
    file = tmp_path / "sst.json"
    file.write_text(json.dumps(document))
    assert run(["convert", str(file), "--from", "sst", "-o", str(tmp_path / "out.json")]) in (0, 2)
    return read_sst(file)


@pytest.mark.parametrize("routes", ["absolute", "relative"])
def test_dragonflies_of_sst(routes: str, tmp_path: Path) -> None:
    model = sst(tmp_path, global_routes=routes)
    assert (model.groups, model.routers, model.nodes) == (9, [4], 2)
    ends = {frozenset(pair) for pair in network_of(model).global_links.tolist()}
    assert ends == {frozenset(pair) for pair in arranged(9, 4, 2, routes).tolist()}
    mapped = sst(tmp_path, global_routes=routes, global_link_map=list(range(8)))
    assert mapped.links == model.links
    # with a port left empty on each of the last two routers, these have one link less
    few = sst(tmp_path, num_groups=7, global_routes=routes)
    of_first = sorted(u for pair in few.links or () for u in pair if u < 4)
    assert of_first == [0, 0, 1, 1, 2, 3]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"num_groups": None}, "num_groups: expected a number"),
        ({"num_groups": 4000}, "at most 1024 groups"),
        ({"global_link_map": [0, 1, 2]}, "global_link_map: expected the links 0 to 7"),
    ],
)
def test_other_files_of_sst_are_refused(params: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        sst(tmp_path, **params)
