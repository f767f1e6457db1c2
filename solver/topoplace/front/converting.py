"""Turn files of other tools into snapshots and machines."""

from __future__ import annotations

from topoplace import options
from topoplace.options import takes
from topoplace.snapshot.convert import Converted, converted

__all__ = ["convert", "converted"]


@takes(options.Convert)
def convert(asked: options.Convert) -> Converted:
    """Turn a file of another tool into a snapshot or a machine, or a machine into such a file.

    Returns
    -------
    Converted
        Its `document`, which is a snapshot, a machine or a text; printed, it is the `notes` on how
        it was made. `save` writes it into a file.
    """
    return converted(asked.file, asked.from_format, asked.to_format, asked)
