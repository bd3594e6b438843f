"""Reads gate.yaml and the criteria file; decides what to run, by whose rules, before anything runs."""
