"""Drawing, axes and names that the charts of all subjects share."""
