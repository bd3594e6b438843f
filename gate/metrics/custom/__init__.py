"""Custom metrics: imported by dotted path and computed in a separate process."""
