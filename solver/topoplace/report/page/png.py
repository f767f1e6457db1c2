"""Small PNG images with a palette: a cell of a picture is a pixel, a colour at most one byte."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

TRANSPARENT = -1.0
"""Stands in all three channels of a cell that shows what is behind the picture."""

_MOST_COLOURS = 255


def palette_png(colours: NDArray[np.float64]) -> bytes:
    """Return a PNG file (ISO/IEC 15948, colour type 3) of a pixel per cell.

    Parameters
    ----------
    colours
        Red, green and blue from 0 to 1, or all `TRANSPARENT`, shape ``(rows, columns, 3)``. With
        more than 255 colours, near ones become the same.
    """
    rows, columns = colours.shape[:2]
    seen = colours.reshape(-1, 3)
    visible = seen[:, 0] >= 0
    palette, entries = _palette(np.rint(255 * seen[visible]).astype(np.uint8))
    pixels = np.zeros(len(seen), dtype=np.uint8)
    pixels[visible] = entries + 1
    palette = np.concatenate([np.zeros((1, 3), dtype=np.uint8), palette])
    depth = next(bits for bits in (1, 2, 4, 8) if len(palette) <= 1 << bits)
    lines = _packed(pixels.reshape(rows, columns), depth)
    unfiltered = np.zeros((rows, 1), dtype=np.uint8)
    data = np.concatenate([unfiltered, lines], axis=1).tobytes()
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, depth, 3, 0, 0, 0)),
            _chunk(b"PLTE", palette.tobytes()),
            _chunk(b"tRNS", b"\0"),
            _chunk(b"IDAT", zlib.compress(data, 9)),
            _chunk(b"IEND", b""),
        ]
    )


def _palette(colours: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the different colours, and the position among them of each."""
    dropped_bits = 0
    while True:
        coarse = colours >> dropped_bits << dropped_bits
        keys = coarse.astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])
        found, entries = np.unique(keys, return_inverse=True)
        if len(found) <= _MOST_COLOURS:
            palette = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1)
            return palette.astype(np.uint8), entries
        dropped_bits += 1


def _packed(pixels: NDArray[np.uint8], depth: int) -> NDArray[np.uint8]:
    """Return rows of pixels with `depth` bits each packed into bytes, the first one highest."""
    per_byte = 8 // depth
    width = -(-pixels.shape[1] // per_byte) * per_byte
    padded = np.pad(pixels, ((0, 0), (0, width - pixels.shape[1])))
    shifts = np.arange(per_byte - 1, -1, -1, dtype=np.uint8) * np.uint8(depth)
    parts = padded.reshape(len(pixels), -1, per_byte) << shifts
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(parts, axis=2)
    return packed


def _chunk(kind: bytes, data: bytes) -> bytes:
    checked = kind + data
    return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))
