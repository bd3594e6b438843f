"""The pytest plugin: a configuration's cases as test items, and the gate's verdict and exit code for the session."""
