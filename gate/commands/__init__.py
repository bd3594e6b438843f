"""The command line: one file per sub-command, which parses, calls and prints. Only `__main__` imports it.

This room and `action` alone print, read the environment and exit.
"""
