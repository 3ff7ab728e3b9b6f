"""Which column of a found table is which column of the base table."""
