"""The page that all reports share."""
