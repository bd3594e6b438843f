"""Custom metrics: found by dotted path, computed in a process of their own."""
