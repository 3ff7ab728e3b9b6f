"""Forms of an audit, filled in from the same counts as everything else."""
