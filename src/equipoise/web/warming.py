"""What workers load before they are asked, so that the first answer does not wait for it.

The module itself loads nothing: it is named before the explorer has loaded what it needs for itself.
"""

from __future__ import annotations


def warm() -> None:
    """Load what every answer needs."""


def warm_more() -> None:
    """Load what other rooms than the first one need."""
    import equipoise.api.plans
    import equipoise.measures.table
    import equipoise.plans.planner
    import equipoise.reports.bias.chart_data
    import equipoise.reports.plan.data
    import equipoise.reports.policy_map.data
    import equipoise.web.rooms.bias
    import equipoise.web.rooms.map
    import equipoise.web.rooms.plan  # noqa: F401
