"""The programs behind `gate init` and `gate doctor`: they look at a repository, a server, and a configured agent."""
