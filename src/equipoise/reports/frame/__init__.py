"""The page around all reports."""
