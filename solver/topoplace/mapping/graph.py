"""Communication graphs: which task sends how many bytes to which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class TaskGraph:
    """Directed messages between tasks.

    Attributes
    ----------
    num_tasks
        Number of tasks.
    sources, targets
        Tasks at the ends of every message, shape ``(num_messages,)``; no message stays at its
        task.
    bytes
        Positive bytes of every message, shape ``(num_messages,)``.
    """

    num_tasks: int
    sources: IntArray
    targets: IntArray
    bytes: IntArray

    @property
    def num_messages(self) -> int:
        """Number of messages."""
        return len(self.bytes)

    @property
    def total_bytes(self) -> int:
        """Sum of all messages' bytes."""
        return sum(self.bytes.tolist())
