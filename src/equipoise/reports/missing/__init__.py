"""Methods to treat missing values as a page."""
