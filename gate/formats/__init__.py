"""Readers of other tools' formats into the nouns of the gate; one file per format, shared by suites and agents."""
