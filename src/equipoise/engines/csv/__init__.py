"""CSV files: their encoding, their dialect and their records."""
