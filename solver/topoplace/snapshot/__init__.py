"""What is on a machine now: the snapshot file, its checks, and other tools' formats."""

from topoplace.snapshot.cubes_state import (
    CubesRequest as CubesRequest,
    CubesState as CubesState,
    prepare_cubes as prepare_cubes,
)
from topoplace.snapshot.files import machine_names as machine_names
from topoplace.snapshot.geometry import Geometry as Geometry
from topoplace.snapshot.hierarchy_state import (
    HierarchyRequest as HierarchyRequest,
    HierarchyState as HierarchyState,
    PartState as PartState,
    hierarchy_of as hierarchy_of,
    prepare_hierarchy as prepare_hierarchy,
)
from topoplace.snapshot.machines import (
    AnyState as AnyState,
    load_any as load_any,
    load_machine as load_machine,
    load_snapshot as load_snapshot,
    load_torus as load_torus,
    prepare_any as prepare_any,
    prepare_empty as prepare_empty,
)
from topoplace.snapshot.schema import (
    Communication as Communication,
    CubesModel as CubesModel,
    HierarchyModel as HierarchyModel,
    MachineModel as MachineModel,
    Request as Request,
    RunningJob as RunningJob,
    Snapshot as Snapshot,
    TorusModel as TorusModel,
    TreeModel as TreeModel,
)
from topoplace.snapshot.state import (
    QueuedState as QueuedState,
    RunningState as RunningState,
    SnapshotState as SnapshotState,
    prepare as prepare,
    torus_of as torus_of,
)
from topoplace.snapshot.tree_state import (
    TreeRequest as TreeRequest,
    TreeState as TreeState,
    prepare_tree as prepare_tree,
    tree_of as tree_of,
)
