"""The worked examples of the documentation prove and print what their pages say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from topoplace.certify import check_document
from topoplace.certify.packing import certified_bound
from topoplace.result.certificate import Certificate
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.hierarchy_state import prepare_contention
from topoplace.snapshot.schema import Pattern, Snapshot
from topoplace.solving import Options, solve
from toy_ring import Job, Ring, RingOracle
from tree_cases import apart, model_of, snapshot_on, uses

GUIDE = Path(__file__).resolve().parent.parent / "docs" / "guide"
DOCS = GUIDE.parent / "proofs"
RING, GRID, TREE = uses(Pattern.RING), uses(Pattern.STENCIL_2D), uses(Pattern.BINOMIAL)

SLOTS = RingOracle(
    Ring((2, 1)), (Job("a", 3, ((1, 1),)), Job("b", 1, ((1, 1),)), Job("d", 2, ((2,),)))
)
ALIKE = RingOracle(Ring((1, 1, 1)), (Job("x", 2, ((1, 1),)), Job("y", 1, ((1, 1),))))
PACKINGS = {"Shared, ref": SLOTS, "Parts": SLOTS, "Cover, alike": ALIKE}
TREES: dict[str, tuple[str, Snapshot]] = {
    "All-start": ("nodes", snapshot_on(model_of([2, 2]), queue=[(2, ()), (1, ())])),
    "Counting": ("nodes", snapshot_on(model_of([2, 2]), queue=[(3, ()), (3, ())])),
    "Domains": ("nodes", snapshot_on(apart([3, 3]), queue=[(2, RING)] * 3)),
    "Thresholds, empty": ("cost", snapshot_on(model_of([2, 2]), queue=[(2, RING)])),
    "Thresholds, needs": ("cost", snapshot_on(model_of([4, 4, 4]), queue=[(6, RING)])),
    "Thresholds, prices": ("cost", snapshot_on(model_of([3, 1, 1, 1]), queue=[(4, GRID)])),
    "Thresholds, shares": ("cost", snapshot_on(model_of([3, 3]), queue=[(4, TREE)])),
}


def code_in(text: str) -> Any:
    """Return the certificate that a text shows."""
    return json.loads("".join(row for row in text.splitlines() if row.startswith("    ")))


def example(title: str) -> tuple[str, Any]:
    """Return what a section says that its certificate proves, and the certificate."""
    section = (DOCS / "examples.md").read_text().split(f"### {title}\n")[1].split("\n#")[0]
    return section.split("Proves ")[1].split(":")[0], code_in(section)


@pytest.mark.parametrize("title", PACKINGS)
def test_examples_of_packings(title: str) -> None:
    stated, document = example(title)
    certificate = TypeAdapter(Certificate).validate_python(document)
    proven = certified_bound(PACKINGS[title], certificate, [])
    assert proven is not None
    assert str(proven.value) == stated


def test_the_example_of_a_branch() -> None:
    text = (DOCS / "placement.md").read_text().split("## An example for pencil and paper\n")[1]
    leaf = json.loads(text.split("The leaf `")[1].split("`")[0])
    branch = code_in(text.split("\n#")[0])
    for document, stated in ((leaf | {"kind": "leaf"}, 4), (branch, 3)):
        proven = certified_bound(SLOTS, TypeAdapter(Certificate).validate_python(document), [])
        assert proven is not None
        assert proven.value == stated


@pytest.mark.parametrize("title", TREES)
def test_examples_of_trees(title: str) -> None:
    stated, certificate = example(title)
    name, snapshot = TREES[title]
    result = solve(prepare_contention(snapshot), "exact", Options(time_limit=60))
    document = result.model_dump(mode="json")
    level = next(level for level in document["levels"] if level["name"] == name)
    level |= {"certificate": certificate, "proof": "certificate"}
    report = check_document(AllocationResult.model_validate_json(json.dumps(document)))
    assert report.holds, report
    claim = next(claim for claim in report.claims if claim.name == f"{name}.bound")
    assert claim.detail == f"the certificate proves {stated}"


@pytest.mark.parametrize("name", ["hierarchies", "recognition", "topology"])
def test_pages_show_what_their_programs_print(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (GUIDE / f"{name}.md").read_text()
    blocks = (re.findall(rf"```{kind}\n(.*?)```", page, re.S) for kind in ("python", "text"))
    (program,), (shown,) = blocks
    exec(program, {})
    assert capsys.readouterr().out == shown
