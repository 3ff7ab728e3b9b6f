"""Which tables have the rows that are needed, and which of them to take."""
