"""Take rows, write the repaired table, and keep a ledger."""
