"""A repair as a page."""
