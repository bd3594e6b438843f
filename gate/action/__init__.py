"""The GitHub Action: inputs and event in, the command line's own calls, then publishing."""
