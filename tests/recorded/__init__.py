"""Recorded situations: a run's record and what it was compared with, and the result that judging them comes to."""
