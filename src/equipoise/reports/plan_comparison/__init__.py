"""Plans side by side as a page."""
