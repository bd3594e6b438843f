"""Readers that convert other tools' formats into the types of the gate; one file per format, shared by suites and
agents."""
