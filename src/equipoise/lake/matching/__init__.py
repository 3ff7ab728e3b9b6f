"""Which column and which value of a table is which of the base."""
