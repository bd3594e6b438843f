"""Readers that convert other tools' formats to the types of the gate; one file per format."""
