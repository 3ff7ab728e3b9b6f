"""Independent verification of a repair from its tables, its plan and its ledger, where these are."""
