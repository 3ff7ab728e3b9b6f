"""Training: rows as models take them, splits, versions, fits, and the file of finished fits."""
