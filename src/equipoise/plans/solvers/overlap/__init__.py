"""Plans for groups that overlap or share limits: a linear relaxation, whole rows, and a search."""
