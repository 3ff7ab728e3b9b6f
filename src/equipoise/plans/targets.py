"""What a plan aims at: ratios K of groups, and the label frequencies of the table.

K is the ratio of rates f_gy/f_y that a group should have, where it is not 1. Ratios are given as
plain data or TOML::

    keep-rates-of = ["sex"]           # every finest group gets its own sex's present rates

    [[targets]]
    group = "sex=w, race=c"           # this group as a whole ...
    k = { L = 1.05, M = 0.9 }         # labels left out share what is left

    [[targets]]
    group = "race=o"
    inside = true                     # ... or each finest group inside it
    k = { H = 1.1 }
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.errors import InputError, SourceNotFound, did_you_mean
from equipoise.lattice import Group, format_value
from equipoise.plans.patterns import members
from equipoise.validate import a_number, at_least
from equipoise.values import MISSING, Value, as_value, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.counts import Axis, Counts
    from equipoise.plans.cells import Real, Whole

RULE = "keep rates of"
ByLabel: TypeAlias = tuple[tuple[Value, float], ...]
"""Label values, each with a number."""


@dataclass(frozen=True)
class Target:
    """The K of one group by label, or of each finest group inside it."""

    group: Group
    k: ByLabel
    inside: bool = False


@dataclass(frozen=True)
class Targets:
    """All targets of a plan, as given by the user.

    >>> Targets.of("keep rates of: sex").keep_rates_of
    ('sex',)
    >>> Targets.of({"sex=w": {"H": 0.9}}).targets[0].k
    (('H', 0.9),)
    """

    keep_rates_of: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()

    @classmethod
    def of(cls, given: Any) -> Targets:
        """Take targets, plain data, the rule ``"keep rates of: sex"`` or a TOML file's path."""
        if given is None or isinstance(given, Targets):
            return given or cls()
        if isinstance(given, str) and given.replace("-", " ").strip().startswith(RULE):
            names = given.replace("-", " ", 2).strip()[len(RULE) :].lstrip(" :=")
            return cls(keep_rates_of=tuple(n.strip() for n in names.split(",") if n.strip()))
        if not isinstance(given, Mapping):
            given = _read_mapping(given, "targets", f"a rule such as `target='{RULE}: sex'`")
        return _from_mapping({str(k): v for k, v in given.items()})

    def to_dict(self) -> dict[str, Any]:
        """Plain data that :meth:`of` reads."""
        listed = [
            {
                "group": str(t.group),
                "inside": t.inside,
                "k": [[plain(value), k] for value, k in t.k],
            }
            for t in self.targets
        ]
        return {"keep-rates-of": list(self.keep_rates_of), "targets": listed}


@dataclass(frozen=True, eq=False)
class Ratios:
    """Targets resolved for one table."""

    finest: Real  # K of each finest group and label; 1 where none was given
    given: NDArray[np.bool_]  # finest groups with their own K
    free: NDArray[np.bool_]  # finest groups without, inside a coarser group that has one
    coarse: tuple[tuple[Group, Real], ...]  # coarser groups, and their K by label


def resolve(targets: Targets, counts: Counts, codes: Any, have: Whole, rates: Real) -> Ratios:
    """Resolve the K of every finest group, and check that each is possible."""
    finest = np.ones(have.shape)
    given, covered = np.zeros((2, len(have)), np.bool_)
    if targets.keep_rates_of:
        finest = _own_rates(counts, codes, have, targets.keep_rates_of) / rates
        given[:] = True
    coarse = []
    for target in targets.targets:
        lines = members(counts, codes, target.group)
        if not len(lines) or not have[lines].sum():
            raise InputError(
                f"the target group {target.group} has no rows; name a group that has some."
            )
        ratio = _completed(target, counts, rates)
        if target.inside or len(target.group) == len(counts.sensitive):
            finest[lines], given[lines] = ratio, True
        else:
            covered[lines] = True
            coarse.append((target.group, ratio))
    return Ratios(finest, given, covered & ~given, tuple(coarse))


def require_consistent(group: Group, ratio: Real, parts: Real, slack: float) -> None:
    """Refuse a target of a coarser group that no mixture of its parts' targets can meet."""
    low, high = parts.min(axis=0), parts.max(axis=0)
    off = (ratio * (1 + slack) < low * (1 - slack)) | (ratio * (1 - slack) > high * (1 + slack))
    if off.any():
        y = int(off.argmax())
        raise InputError(
            f"the targets contradict each other: {group} should have K = {ratio[y]:g}, but its "
            f"parts should have K from {low[y]:g} to {high[y]:g}, and a group is a mixture of "
            "its parts."
        )


def require_agreement(counts: Counts, coarse: Sequence[tuple[Group, Real]], slack: float) -> None:
    """Refuse targets for all values of one attribute that contradict those of another.

    The groups of each attribute make up the same table, so its label frequencies must lie between
    the targets of either.
    """
    whole: list[tuple[str, Real, Real]] = []
    for axis in counts.sensitive:
        ratios = [k for group, k in coarse if tuple(group) == (axis.name,)]
        if len(ratios) < len([v for v in axis.values if v is not MISSING]):
            continue
        low, high = np.min(ratios, axis=0) * (1 - slack), np.max(ratios, axis=0) * (1 + slack)
        for name, least, most in whole:
            off = (low > most * (1 + 1e-9)) | (high < least * (1 - 1e-9))
            if off.any():
                y = int(off.argmax())
                label = format_value(counts.label.values[y])
                raise InputError(
                    f"the targets contradict each other: those of all {name}= groups put the K of "
                    f"{label} for the whole table between {least[y]:g} and {most[y]:g}, those of "
                    f"all {axis.name}= groups between {low[y]:g} and {high[y]:g}."
                )
        whole.append((axis.name, low, high))


def _own_rates(counts: Counts, codes: Any, have: Whole, names: Sequence[str]) -> Real:
    axes = [a.name for a in counts.sensitive]
    chosen = []
    for name in names:
        counts.axis(name)
        if name not in axes:
            raise InputError(f"{RULE}: {name!r} is the label; name sensitive attributes.")
        chosen.append(axes.index(name))
    _, group = np.unique(codes[:, chosen], axis=0, return_inverse=True)
    sums = np.zeros((int(group.max()) + 1, have.shape[1]))
    np.add.at(sums, group.ravel(), have)
    total: Real = sums.sum(axis=1, keepdims=True)
    if not total.all():
        raise InputError(
            f"{RULE}: a group without rows has no rates to keep; give it its own target."
        )
    return np.asarray((sums / total)[group.ravel()])


def _completed(target: Target, counts: Counts, rates: Real) -> Real:
    """K of every label; labels without a K share what the others leave."""
    label = counts.label
    ratio = np.full(len(label), np.nan)
    for value, k in target.k:
        place = label.code(value)
        if not rates[place]:
            raise InputError(
                f"label {format_value(value)} has no rows, so a ratio K to its frequency is "
                "impossible."
            )
        ratio[place] = k
    ratio[np.isnan(ratio) & (rates == 0)] = 1.0  # rows with a missing label are set aside
    known = ~np.isnan(ratio)
    spent = float((ratio[known] * rates[known]).sum())
    if known.all():
        if abs(spent - 1) > 1e-6:
            raise InputError(
                f"the targets of {target.group} do not add up: ΣK·f is {spent:.6g}, not 1, so its "
                f"rates would not sum to one. Rescaled they would be {_listed(label, ratio / spent)}."
            )
        return ratio
    if spent > 1:
        raise InputError(
            f"the targets of {target.group} need ΣK·f = {spent:.6g} of its rows, more than all; "
            "lower them until the sum is at most 1."
        )
    left = float(rates[~known].sum())
    if not left:
        raise InputError(
            f"the targets of {target.group} leave a share for labels that have no rows."
        )
    ratio[~known] = (1 - spent) / left
    return ratio


def complete_rates(group: Group, given: ByLabel, counts: Counts, rates: Real) -> Real:
    """The target rate of every label; those left out share the rest as they do now."""
    label = counts.label
    wanted = np.full(len(label), np.nan)
    for value, rate in given:
        wanted[label.code(value)] = rate
    wanted[np.isnan(wanted) & (rates == 0)] = 0.0  # rows with a missing label are set aside
    known = ~np.isnan(wanted)
    spent = float(wanted[known].sum())
    if spent > 1 + 1e-6 or (known.all() and abs(spent - 1) > 1e-6):
        raise InputError(
            f"the target rates of {group} add up to {spent:.6g}, not 1; rescaled they would be "
            f"{_listed(label, np.nan_to_num(wanted) / spent)}."
        )
    if known.all():
        return np.asarray(wanted / spent)
    wanted[~known] = max(1 - spent, 0.0) * rates[~known] / rates[~known].sum()
    return wanted


def _listed(label: Axis, numbers: Real) -> str:
    pairs = zip(label.values, numbers, strict=True)
    return ", ".join(f"{format_value(value)} = {number:.6g}" for value, number in pairs)


def label_frequencies(shares: ByLabel, label: Axis, have: Whole) -> Real:
    """Check the shares that a request gives to labels, and return them in the order of the labels.

    ``have`` is the number of rows of each label.
    """
    rates = np.full(len(label), np.nan)
    for value, share in shares:
        rates[label.code(value)] = share
    rates[np.isnan(rates) & (have == 0)] = 0.0  # rows with a missing label are set aside
    for value, share, rows in zip(label.values, rates, have, strict=True):
        if np.isnan(share):
            raise InputError(f"`labels` has no share for {format_value(value)}.")
        if not share and rows:
            raise InputError(
                f"`labels` gives {format_value(value)} the share 0, but {rows:,} rows have this "
                "label, which no plan can change; give it a share above 0."
            )
    total = rates.sum()
    if abs(total - 1) > 1e-6:
        raise InputError(
            f"the shares of `labels` add up to {total:.6g}, not 1; rescaled they would be "
            f"{_listed(label, rates / total)}."
        )
    return np.asarray(rates / total)


def require_labels(label: Axis, rates: Real, *, plan_missing: bool) -> None:
    """Refuse labels between which there is no bias to repair, or that have no rows."""
    if len(label.values) < 2:
        raise InputError(
            f"the label {label.name!r} has only one value; there is no bias to repair."
        )
    empty = [format_value(v) for v, r in zip(label.values, rates, strict=True) if not r]
    absent = MISSING in label.values and not plan_missing
    if empty and not (absent and len(empty) == 1):
        raise InputError(
            f"label {empty[0]} has no rows, so its frequency is 0 and no group can have a share of "
            "it; leave it out of the counts."
        )


# ---------------------------------------------------------------------------- reading in


def read_shares(given: Any) -> ByLabel:
    """Read ``{label: share}``, pairs of them, or a file with them."""
    if isinstance(given, (str, os.PathLike)):
        given = _read_mapping(given, "label frequencies", "'keep' or 'free'")
    pairs = given.items() if isinstance(given, Mapping) else given
    try:
        shares = tuple((as_value(label), float(share)) for label, share in pairs)
    except (TypeError, ValueError):
        raise InputError(
            f"`labels` must be 'keep', 'free' or a share for each label value, as in "
            f"{{'yes': 0.3, 'no': 0.7}}, not {given!r}."
        ) from None
    for label, share in shares:
        at_least(f"the share of label {label}", share, 0)
    return shares


def _read_mapping(path: str | os.PathLike[str], what: str, instead: str) -> Mapping[str, Any]:
    """Read a TOML or JSON file; ``instead`` is what the user can give if there is none."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        data = json.loads(text) if str(path).endswith(".json") else tomllib.loads(text)
    except FileNotFoundError:
        raise SourceNotFound(
            f"there is no file {path} with {what}; write one, or give {instead}."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"the {what} in {path} cannot be read: {error}.") from None
    if not isinstance(data, Mapping):
        raise InputError(f"the {what} in {path} must be a table of keys and values.")
    return data


def _from_mapping(given: Mapping[str, Any]) -> Targets:
    keys = {k.replace("_", "-").replace(" ", "-").rstrip(":"): v for k, v in given.items()}
    if not {"keep-rates-of", "targets"} & set(keys):
        targets = tuple(_target({"group": g, "k": k}) for g, k in given.items())
        return Targets(targets=targets)
    unknown = sorted(set(keys) - {"keep-rates-of", "targets"})
    if unknown:
        raise InputError(
            f"targets have no key {unknown[0]!r}; the keys are keep-rates-of and targets."
            f"{did_you_mean(unknown[0], ['keep-rates-of', 'targets'])}"
        )
    names = keys.get("keep-rates-of", ())
    listed = keys.get("targets", ())
    if isinstance(listed, (str, Mapping)) or not isinstance(listed, Sequence):
        raise InputError("targets must be a list of tables, [[targets]] in TOML.")
    return Targets(
        keep_rates_of=(names,) if isinstance(names, str) else tuple(names),
        targets=tuple(_target(t) for t in listed),
    )


def _target(given: Any) -> Target:
    if not isinstance(given, Mapping) or not {"group", "k"} <= set(given):
        raise InputError(
            "a target needs a group and its k by label: group = 'sex=w', k = {H = 0.9}."
        )
    unknown = sorted(set(given) - {"group", "k", "inside"})
    if unknown:
        raise InputError(f"a target has no key {unknown[0]!r}; the keys are group, k and inside.")
    ratios = given["k"]
    if not isinstance(ratios, (Mapping, Sequence)) or isinstance(ratios, str) or not ratios:
        raise InputError(f"give the k of {given['group']} by label, as in k = {{H = 0.9}}.")
    pairs = ratios.items() if isinstance(ratios, Mapping) else [tuple(p) for p in ratios]
    k = []
    for label, ratio in pairs:
        a_number(f"k of {given['group']}, {label}", ratio)
        if not ratio > 0:
            raise InputError(f"k of {given['group']}, label {label}, must be above 0, not {ratio}.")
        k.append((as_value(label), float(ratio)))
    group = given["group"]
    return Target(
        Group.parse(group) if isinstance(group, str) else group, tuple(k), bool(given.get("inside"))
    )
