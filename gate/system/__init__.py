"""The world outside: HTTP, git, child processes, signals, prices."""
