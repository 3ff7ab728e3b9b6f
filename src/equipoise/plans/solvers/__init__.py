"""Methods that find rows for a problem; each serves the problems its module describes."""
