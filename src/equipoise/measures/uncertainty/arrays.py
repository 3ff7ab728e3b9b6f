"""Arrays of counts that broadcast together, processed in chunks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator

Floats: TypeAlias = NDArray[np.float64]

CHUNK = 1 << 15
"""Number of elements processed at a time: a dozen temporary arrays then fit in the cache."""


def align(*given: ArrayLike) -> tuple[tuple[NDArray[Any], ...], tuple[int, ...]]:
    """Give all arrays the same number of axes and the first one the full shape; also return it."""
    arrays = [np.asarray(array) for array in given]
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    axes = max(1, len(shape))
    arrays = [array.reshape((1,) * (axes - array.ndim) + array.shape) for array in arrays]
    arrays[0] = np.broadcast_to(arrays[0], shape or (1,))
    return tuple(arrays), shape


def chunks(
    arrays: tuple[NDArray[Any], ...], shape: tuple[int, ...]
) -> Iterator[tuple[slice, list[Floats]]]:
    """Cut arrays along the first axis into parts of about `CHUNK` elements, as floats."""
    rows = max(1, CHUNK // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], rows):
        part = slice(start, start + rows)
        chunk = [array if array.shape[0] == 1 else array[part] for array in arrays]
        yield part, [piece.astype(np.float64, copy=False) for piece in chunk]
