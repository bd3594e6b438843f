"""The command line: one file per sub-command, which parses, calls and prints. Only `__main__` imports it.

Only this package and `action` print, read the environment and exit.
"""
