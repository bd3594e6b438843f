"""The promises of SECURITY.md: redaction, escaping, environments, bounds, and the one writer of files."""
