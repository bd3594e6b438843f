"""Where results are published: one file per host, and what GitHub's events and runner ask of us."""
