"""The history of a stream as a page."""
