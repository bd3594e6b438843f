"""The command line: parse, call, print, exit. One file per group of sub-commands."""
