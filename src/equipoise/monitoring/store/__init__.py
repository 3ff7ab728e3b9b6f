"""The history of streams: batches as counts, in SQLite or PostgreSQL."""
