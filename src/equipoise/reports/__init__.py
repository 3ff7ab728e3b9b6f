"""Results as one plain dict, and the dict as text, Markdown, CSV, charts and a page."""
