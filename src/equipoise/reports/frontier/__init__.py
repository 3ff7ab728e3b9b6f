"""A frontier as a page."""
