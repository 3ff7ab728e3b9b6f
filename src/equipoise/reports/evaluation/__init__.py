"""An evaluation as a page."""
