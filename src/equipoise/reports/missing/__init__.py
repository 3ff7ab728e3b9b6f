"""Ways to treat missing values as a page."""
