"""Readers of other tools' files; an `InputError` names file, line, field and value."""

from topoplace.snapshot.readers.decisions import (
    Decided as Decided,
    Decision as Decision,
    decision_of as decision_of,
    kueue_decision as kueue_decision,
    kueue_snapshot as kueue_snapshot,
    read_decisions as read_decisions,
    slurm_block_decision as slurm_block_decision,
    slurm_block_snapshot as slurm_block_snapshot,
)
from topoplace.snapshot.readers.kubernetes import (
    read_kubernetes as read_kubernetes,
    read_kubernetes_machine as read_kubernetes_machine,
)
from topoplace.snapshot.readers.slices import (
    read_rfold as read_rfold,
    read_slice_scenario as read_slice_scenario,
)
from topoplace.snapshot.readers.slurm import read_topology_conf as read_topology_conf
from topoplace.snapshot.readers.slurm_cluster import (
    SlurmCluster as SlurmCluster,
    snapshot_of_slurm as snapshot_of_slurm,
)
from topoplace.snapshot.readers.slurm_jobs import read_slurm_jobs as read_slurm_jobs
from topoplace.snapshot.readers.slurm_nodes import read_slurm_nodes as read_slurm_nodes
from topoplace.snapshot.readers.slurm_topology import read_slurm_topology as read_slurm_topology
from topoplace.snapshot.readers.slurm_torus import (
    NamedTorus as NamedTorus,
)
from topoplace.snapshot.readers.slurm_yaml import (
    read_topology_yaml as read_topology_yaml,
    topology_yaml_of as topology_yaml_of,
)
from topoplace.snapshot.readers.tables import (
    CrayTable as CrayTable,
    SwfLog as SwfLog,
    read_cray_neighbours as read_cray_neighbours,
    read_swf as read_swf,
    snapshot_of_swf as snapshot_of_swf,
)
from topoplace.snapshot.readers.topograph import read_topograph as read_topograph
