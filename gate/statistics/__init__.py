"""The mathematics of the gate: intervals, permutation tests, e-values. Knows no agents."""
