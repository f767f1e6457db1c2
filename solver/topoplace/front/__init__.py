"""The front door: what Python offers as `import topoplace as tp`, and what the commands call.

`documents`, `placing`, `several`, `mapping` and `studies` have the functions, `writing` what files
and the screen show of what they return; they share `arguments`. Each is imported when it is first
used, so that the command line starts at once.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from topoplace.front import arguments as arguments
    from topoplace.front import batching as batching
    from topoplace.front import converting as converting
    from topoplace.front import documents as documents
    from topoplace.front import layouts as layouts
    from topoplace.front import mapping as mapping
    from topoplace.front import placing as placing
    from topoplace.front import replaying as replaying
    from topoplace.front import several as several
    from topoplace.front import studies as studies
    from topoplace.front import writing as writing

_ROOMS = (
    *("arguments", "batching", "converting", "documents", "layouts", "mapping"),
    *("placing", "replaying", "several", "studies", "writing"),
)


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'topoplace.front' has no attribute {name!r}")
    return importlib.import_module(f"topoplace.front.{name}")
