"""A sweep as a page."""
