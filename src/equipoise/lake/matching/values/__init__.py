"""Which value of a found table means which value of the base table."""
