"""Whose file it is, by how it begins: found out without the readers, which few commands need."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from topoplace.snapshot.files import read_bytes

_KUBERNETES = re.compile(r"(apiVersion|kind|items|metadata)\s*:")
_KUBERNETES_JSON = re.compile(r'"apiVersion"\s*:')
_TOPOGRAPH = re.compile(r"(switches|blocks)\s*:")
_CONF = re.compile(r"(SwitchName|BlockName|BlockSizes|AggregatedBlock)\s*=", re.IGNORECASE)
_YAML = re.compile(r"(%YAML|\[|-\s)")
_IBNETDISCOVER = re.compile(r'^(Switch|Ca)\s+\d+\s+"[SH]-', re.MULTILINE)
_HWLOC = re.compile(r"<!DOCTYPE topology\b|<topology\b[^>]*>\s*<object\b")
_POD = re.compile(r'"pod"\s*:')

_OF_DOCUMENTS = {
    *("schema", "kind", "name", "shape", "wrap", "switches", "levels", "hosts", "cubes", "side"),
    *("distances", "apiVersion", "metadata", "items"),
}


def _first_said(text: str) -> str:
    """Return the first line that is neither blank, nor a comment, nor begins a YAML document."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and line[0] != "#" and line != "---"), "")


def is_kubernetes(text: str) -> bool:
    """Return whether a text begins as an object or a list of Kubernetes, in JSON or YAML."""
    if text.lstrip().startswith("{"):
        return _KUBERNETES_JSON.search(text) is not None
    return _KUBERNETES.match(_first_said(text)) is not None


def is_topograph(text: str) -> bool:
    """Return whether a text begins as a model of topograph."""
    return _TOPOGRAPH.match(_first_said(text)) is not None


def is_topology_conf(text: str) -> bool:
    """Return whether a text begins as a topology.conf, or as what scontrol show topology prints."""
    return _CONF.match(_first_said(text)) is not None


def is_topology_yaml(text: str) -> bool:
    """Return whether a text begins as a topology.yaml: as a list."""
    return _YAML.match(_first_said(text)) is not None


def is_ibnetdiscover(text: str) -> bool:
    """Return whether a text begins as the output of ibnetdiscover."""
    return _IBNETDISCOVER.search(text) is not None


def is_hwloc(text: str) -> bool:
    """Return whether a text begins as hwloc's XML."""
    return _HWLOC.search(text) is not None


def may_have_pod(text: str) -> bool:
    """Return whether a text, which is JSON, may be a scenario of slice-packer-torus."""
    return _POD.search(text) is not None


def is_slice_scenario(raw: dict[str, Any]) -> bool:
    """Return whether a JSON object is a scenario: it has a pod, and no schema of ours."""
    return isinstance(raw.get("pod"), dict) and "schema" not in raw


def is_node_switch(path: str | Path) -> bool:
    """Return whether a file is a JSON object of nodes, each with its switch or several of them."""
    try:
        raw = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(raw, dict)
        and len(raw) > 1
        and not _OF_DOCUMENTS & raw.keys()
        and (
            all(isinstance(at, str) for at in raw.values())
            or all(
                isinstance(at, list) and all(isinstance(x, str) for x in at) for at in raw.values()
            )
        )
    )
