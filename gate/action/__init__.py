"""The GitHub Action: reads inputs and event, runs the steps of the command line, and publishes. Decides nothing.

The container starts `entrypoint`; no other package imports this one.
"""
