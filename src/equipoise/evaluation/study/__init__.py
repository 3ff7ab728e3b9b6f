"""The results of an evaluation: scores, differences, groups, and the relation of bias and error."""
