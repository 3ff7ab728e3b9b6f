"""From counts to the smallest repair: whole-number additions and deletions per cell."""
