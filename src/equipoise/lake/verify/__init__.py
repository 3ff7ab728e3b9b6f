"""Check a repair by itself."""
