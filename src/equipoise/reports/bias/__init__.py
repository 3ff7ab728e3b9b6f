"""A bias table as text, Markdown and a page."""
