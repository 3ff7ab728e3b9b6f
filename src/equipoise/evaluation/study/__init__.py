"""What the work says: scores, differences, groups, the relation of bias and error."""
