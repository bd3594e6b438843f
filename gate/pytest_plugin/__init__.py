"""pytest's plugin: a configuration's cases as test items, and the gate's verdict and exit code as the session's."""
