"""What other tools write, read into the nouns of the gate; one file per format, shared by suites and agents."""
