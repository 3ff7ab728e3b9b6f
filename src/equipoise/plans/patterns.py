"""Which groups and cells of a problem a pattern names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import Group

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from equipoise.counts import Axis, Counts


def group_of(axes: Iterable[Axis], codes: Iterable[int]) -> Group:
    """The group that codes stand for; the code after the last value of an axis is any value."""
    pairs = zip(axes, codes, strict=True)
    return Group({axis.name: axis.values[code] for axis, code in pairs if code < len(axis)})


def members(counts: Counts, codes: Any, group: Group) -> Any:
    """Find the lines of the finest groups inside a group."""
    inside = np.ones(len(codes), np.bool_)
    names = [a.name for a in counts.sensitive]
    for name, value in group.items():
        axis = counts.axis(name)
        if name not in names:
            raise InputError(
                f"{group} names the label {name!r}; a group is named by sensitive attributes: "
                f"{', '.join(names)}."
            )
        inside &= codes[:, names.index(name)] == axis.code(value)
    return np.flatnonzero(inside)


def cell_numbers(counts: Counts, codes: NDArray[np.int32], pattern: str) -> NDArray[np.intp]:
    """Find the numbers (line × labels + label) of the cells that a pattern names."""
    return numbers_of(counts, codes, Group.parse(pattern))


def numbers_of(counts: Counts, codes: NDArray[np.int32], group: Group) -> NDArray[np.intp]:
    """Find the numbers of the cells of a group, which may have a label."""
    lines = members(counts, codes, sensitive_part(counts, group))
    k = len(counts.label)
    if counts.label.name in group:
        return np.asarray(lines * k + counts.label.code(group[counts.label.name]))
    return np.asarray((lines[:, None] * k + np.arange(k)).ravel())


def sensitive_part(counts: Counts, group: Group) -> Group:
    """The pattern without the label."""
    return Group({n: v for n, v in group.items() if n != counts.label.name})
