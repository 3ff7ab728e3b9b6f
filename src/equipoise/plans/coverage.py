"""Minimum numbers of rows: of a pattern, and of every group of some attributes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import Group, parse_pattern
from equipoise.plans.patterns import members, sensitive_part
from equipoise.values import ANY, MISSING, Selector, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from equipoise.counts import Counts
    from equipoise.options.plan import Numbers
    from equipoise.plans.cells import Whole
    from equipoise.plans.limits import Kind

MOST_GROUPS = 10_000
"""Maximum number of groups that one option may name or create."""


class LeastRows(NamedTuple):
    """A minimum number of rows of a pattern, and the text of the request that it comes from."""

    kind: Kind
    pattern: str
    rows: int
    asked: str
    group: Group  # of the pattern


def read_each(text: str) -> dict[str, Selector]:
    """Read attributes whose values vary, with or without ``=*``, beside those with one value.

    >>> read_each("sex, race")
    {'sex': ANY, 'race': ANY}
    >>> read_each("sex=*, race=c")
    {'sex': ANY, 'race': 'c'}
    """
    if "=" in text:
        return parse_pattern(text)
    names = [name.strip().strip("'") for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise InputError(
            f"`at_least_each` takes names of attributes, each once, as in 'sex, race', not {text!r}."
        )
    return dict.fromkeys(names, ANY)


def minimums(
    counts: Counts, codes: NDArray[np.int32], have: Whole, at_least: Numbers, each: Numbers
) -> list[LeastRows]:
    """Every minimum that a request sets, one per pattern and one per group of the attributes."""
    found = [
        LeastRows("at_least", pattern, int(rows), pattern, Group.parse(pattern))
        for pattern, rows in at_least
    ]
    for text, rows in each:
        groups = _every_group(counts, codes, have, text)
        found += [
            LeastRows("at_least_each", str(group), int(rows), text, group) for group in groups
        ]
    return found


def _every_group(
    counts: Counts, codes: NDArray[np.int32], have: Whole, text: str
) -> Iterator[Group]:
    """All combinations of the values that occur, also those without rows."""
    names = [axis.name for axis in counts.sensitive]
    choices: list[list[Value]] = []
    for name, value in read_each(text).items():
        axis = counts.axis(name)
        if value is not ANY:
            axis.code(value)
            choices.append([value])
            continue
        used = have.sum(axis=0) > 0 if name not in names else codes[:, names.index(name)]
        present = np.flatnonzero(used) if name not in names else np.unique(used)
        choices.append([axis.values[code] for code in present.tolist()])
    many = 1
    for each in choices:
        many *= len(each)
    if many > MOST_GROUPS:
        raise InputError(
            f"`at_least_each`: {text} has {many:,} combinations of values; the maximum is "
            f"{MOST_GROUPS:,}. Name fewer attributes."
        )
    attributes = list(read_each(text))
    for values in itertools.product(*choices):
        yield Group(dict(zip(attributes, values, strict=True)))


def add_empty_groups(
    counts: Counts,
    codes: NDArray[np.int32],
    have: Whole,
    asked: Sequence[LeastRows],
    added: Counts | None = None,
) -> tuple[NDArray[np.int32], Whole]:
    """Add lines for groups that have no rows yet and must get some, or to which rows are added."""
    new: dict[tuple[int, ...], None] = {}
    if added is not None:
        known = set(map(tuple, codes.tolist()))
        got = map(tuple, added.with_axes(counts).codes[:, :-1].tolist())
        new = dict.fromkeys(line for line in got if line not in known)
    for minimum in asked:
        group = minimum.group
        if not minimum.rows or len(members(counts, codes, sensitive_part(counts, group))):
            continue
        choices = [
            [axis.code(group[axis.name])]
            if axis.name in group
            else [c for c, v in enumerate(axis.values) if v is not MISSING]
            for axis in counts.sensitive
        ]
        lines = list(itertools.islice(itertools.product(*choices), MOST_GROUPS + 1))
        if len(lines) > MOST_GROUPS:
            raise InputError(
                f"{minimum.pattern} has no rows and contains too many groups; name one of them."
            )
        new |= dict.fromkeys(lines)
    if not new:
        return codes, have
    return (
        np.concatenate([codes, np.array(list(new), np.int32)]),
        np.concatenate([have, np.zeros((len(new), have.shape[1]), np.int64)]),
    )
