"""The texts of commands: help pages, the demo's files, and plans."""
