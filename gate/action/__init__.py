"""The GitHub Action: reads inputs and event, makes the calls of the command line, and publishes. Decides nothing.

The container starts `entrypoint`; no other room imports this one.
"""
