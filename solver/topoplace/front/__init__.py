"""The front door: what Python offers as `import topoplace as tp`, and what the commands call.

`documents`, `checking`, `converting`, `exporting`, `live`, `placing`, `trading`, `repacking`,
`mapping`, `studies` and `replaying` have the functions, `writing` what files and the screen show of
what they return. Their options are declared in `topoplace.options`. Each is imported when it is
first used, so that the command line starts at once.
"""

from __future__ import annotations

from topoplace.importing import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from topoplace.front import checking as checking
    from topoplace.front import converting as converting
    from topoplace.front import documents as documents
    from topoplace.front import exporting as exporting
    from topoplace.front import live as live
    from topoplace.front import mapping as mapping
    from topoplace.front import placing as placing
    from topoplace.front import repacking as repacking
    from topoplace.front import replaying as replaying
    from topoplace.front import studies as studies
    from topoplace.front import trading as trading
    from topoplace.front import writing as writing

_ROOMS = (
    *("checking", "converting", "documents", "exporting", "live", "mapping", "placing"),
    *("repacking", "replaying", "studies", "trading", "writing"),
)


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'topoplace.front' has no attribute {name!r}")
    return imported(f"topoplace.front.{name}")
