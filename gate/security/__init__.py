"""What SECURITY.md promises: redaction, escaping, environments, bounds, and the one writer of files."""
