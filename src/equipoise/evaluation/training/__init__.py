"""The work: rows as models take them, splits, versions, fits, and the file that keeps them."""
