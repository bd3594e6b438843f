"""Agent Gate: the quality gate for AI agents in continuous integration."""

__version__ = "0.1.0"
