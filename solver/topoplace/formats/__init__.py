"""Other tools' files; an `InputError` names file, line, field and value.

Read in this order: `declared` (how a reader declares what it does with each field; `sources` lists
all tables), `text` and `yaml_text` (what all readers share), then one source each: `slurm`,
`kubernetes`, `topograph`, `slices`, `decisions`. `topoplace.snapshot.machines` finds out whose
file it is.
"""

from topoplace.formats.decisions import (
    Decided as Decided,
    Decision as Decision,
    decision_of as decision_of,
    read_decisions as read_decisions,
)
from topoplace.formats.kubernetes.snapshots import (
    read_kubernetes as read_kubernetes,
    read_kubernetes_machine as read_kubernetes_machine,
)
from topoplace.formats.slices import (
    read_rfold as read_rfold,
    read_slice_scenario as read_slice_scenario,
)
from topoplace.formats.slurm.cluster import (
    SlurmCluster as SlurmCluster,
    snapshot_of_slurm as snapshot_of_slurm,
)
from topoplace.formats.slurm.jobs import read_slurm_jobs as read_slurm_jobs
from topoplace.formats.slurm.nodes import read_slurm_nodes as read_slurm_nodes
from topoplace.formats.slurm.topology import (
    read_slurm_topology as read_slurm_topology,
    topology_yaml_of as topology_yaml_of,
)
from topoplace.formats.text import (
    SwfLog as SwfLog,
    read_cray_neighbours as read_cray_neighbours,
    read_swf as read_swf,
    snapshot_of_swf as snapshot_of_swf,
)
from topoplace.formats.topograph import read_topograph as read_topograph
