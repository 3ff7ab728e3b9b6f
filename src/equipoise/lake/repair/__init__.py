"""Rows taken from a lake, the repaired table, and the ledger of every change."""
