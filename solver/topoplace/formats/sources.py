"""All tables of what is read of other tools' files: a page of the documentation for each source."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from topoplace.formats.declared import Table


@dataclass(frozen=True)
class Source:
    """A source, and where its tables are.

    Attributes
    ----------
    page
        The name of its page, without an ending.
    title
        What it is called: "What is read of ...".
    about
        What it is, and which command reads it, in a sentence or two.
    module, names
        The module of its tables, within `topoplace.formats`, and their names in there, in
        the order of the page.
    """

    page: str
    title: str
    about: str
    module: str
    names: tuple[str, ...]

    def tables(self) -> list[Table]:
        """Return the tables of the source, whose module is imported now."""
        module = import_module(f"topoplace.formats.{self.module}")
        return [getattr(module, name) for name in self.names]


SOURCES = (
    Source(
        "slurm",
        "Slurm's listings",
        "What `squeue`, `scontrol show job`, `node`, `partition` and `reservation` print; "
        "a folder of them is a snapshot, and `convert --from slurm` reads them one by one. Fields "
        "that are not listed are named once.",
        "slurm.fields",
        (
            *("SBATCH", "SQUEUE_JSON", "SQUEUE_LISTING", "SCONTROL_JOB"),
            *("SCONTROL_NODE", "SCONTROL_NODE_JSON", "SCONTROL_PARTITION", "SCONTROL_RESERVATION"),
        ),
    ),
    Source(
        "kubernetes",
        "Kubernetes objects",
        "What `kubectl get -o json` or `-o yaml` prints; `place FILE` and `convert --from "
        "kubernetes` read it. A field of a job or of its pods that is not listed holds the job "
        "(option `unknown-fields`); one of the machine is named once.",
        "kubernetes.fields",
        (
            *("POD", "CONTAINER", "NOTES", "JOB", "JOB_SET", "LWS_SPEC", "WORKLOAD"),
            *(
                "VOLCANO_JOB",
                "POD_GROUP",
                "GANG",
                "COMPOSITE",
                "TOPOLOGY",
                "FLAVOR",
                "QUEUES",
                "HYPER_NODE",
                "NODE",
                "KINDS",
                "HOLDS",
            ),
        ),
    ),
    Source(
        "decisions",
        "recorded decisions",
        "A JSON object a line, which `audit` reads. A field of the request or of nodes that is not "
        "listed is said with the decision, which is unjudged then unless it is optimal or rightly "
        "waits; other fields that are not listed are named once.",
        "decisions",
        ("KUEUE", "SLURM", "POD"),
    ),
    Source(
        "topograph",
        "models of topograph",
        "A model of NVIDIA's topograph, in YAML, which is a machine. A field that is not listed is "
        "refused.",
        "topograph",
        ("MODEL",),
    ),
    Source(
        "fabrics",
        "ibnetdiscover and hwloc",
        "What `ibnetdiscover` prints, and `lstopo --of xml`; both are machines.",
        "fabrics",
        ("DISCOVERED", "HWLOC"),
    ),
    Source(
        "simulators",
        "CODES and SST",
        "The dragonfly of a configuration of CODES, or of what `sst --output-json` writes, which "
        "is a machine. Other parameters say nothing of where a job may run, and are left out.",
        "simulators",
        ("CODES", "SST"),
    ),
    Source(
        "slices",
        "slice-packer-torus and RFold",
        "Scenarios in JSON, which `place FILE` and `convert --from slice-packer` read, and traces "
        "in CSV, which `convert --from rfold` and `replay` read.",
        "slices",
        ("SCENARIO", "TRACE"),
    ),
    Source(
        "swf",
        "job logs (SWF)",
        "Lines of 18 fields, which `convert --from swf` and `replay` read. A replay holds no job: "
        "it starts jobs of all partitions on all nodes, and says how many that are.",
        "swf",
        ("SWF",),
    ),
    Source(
        "alcf",
        "job logs of ALCF",
        "The logs that the Argonne Leadership Computing Facility publishes of Mira, Theta and "
        "other machines, in CSV, which `replay` reads. That of Intrepid is in the Standard "
        "Workload Format.",
        "alcf",
        ("LOG",),
    ),
)
"""Every source, in the order of the index."""
