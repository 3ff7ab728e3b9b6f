"""Schema matching: which column of a table is which column of the base."""
