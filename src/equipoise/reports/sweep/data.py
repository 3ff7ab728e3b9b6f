"""The chart of a sweep, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.plans.sweeps import WORDS

if TYPE_CHECKING:
    from equipoise.plans.sweeps import Sweep, SweepPoint


def curve(sweep: Sweep) -> dict[str, Any]:
    """What a sweep draws: a point for each value that has a plan, and the values without one.

    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> data = curve(eq.frontier(counts, sweep="coverage", values=[100, 200], tolerance=0.05))
    >>> [(point["x"], point["y"]) for point in data["points"]]
    [(100.0, 19.0), (200.0, 58.0)]
    """
    found = [p for p in sweep.points if p.found]
    points = [item for p in found for item in _items(sweep, p)]
    values = [item["x"] for item in points] or [0.0, 1.0]
    # Ratios are compared by factors; the other values may be 0.
    log = sweep.sweep == "cost-ratio" and min(values) > 0
    return {
        "title": WORDS[sweep.sweep] + (" of the plan" if sweep.sweep == "label-drift" else ""),
        "measure": {"budget": "largest bias left", "cost-ratio": "rows"}.get(
            sweep.sweep, "least cost"
        ),
        "log": log,
        "y_max": 1.05 * max([item["y"] for item in points] or [1.0]) or 1.0,
        "series": sorted({item["what"] for item in points}),
        "points": points,
        "bounds": [
            {"x": _x(sweep, p), "low": p.bound, "high": p.cost}
            for p in found
            if sweep.sweep in ("coverage", "label-drift")
            and 0 < p.bound < p.cost - 1e-6 * max(p.cost, 1)
        ],
        "none": [p.value for p in sweep.points if not p.found],
    }


def _x(sweep: Sweep, point: SweepPoint) -> float:
    return point.drift if sweep.sweep == "label-drift" else point.value


def _items(sweep: Sweep, point: SweepPoint) -> list[dict[str, Any]]:
    about = (
        f"{sweep.sweep} {point.value:g}: cost {point.cost:,.6g}, {point.additions:,} rows added and "
        f"{point.deletions:,} deleted, largest bias {point.reached:.4g}, label drift {point.drift:.4g}"
        + (", dominated" if point.dominated else "")
    )
    place = {"x": _x(sweep, point), "about": about, "dominated": point.dominated}
    if sweep.sweep == "cost-ratio":
        return [
            {**place, "y": point.additions, "what": "added"},
            {**place, "y": point.deletions, "what": "deleted"},
        ]
    y = point.reached if sweep.sweep == "budget" else point.cost
    return [{**place, "y": y, "what": "plans"}]
