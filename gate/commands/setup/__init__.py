"""The modules behind `gate init` and `gate doctor`: they examine a repository, a server, and a configured agent."""
