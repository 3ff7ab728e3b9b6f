"""A policy map as a page."""
