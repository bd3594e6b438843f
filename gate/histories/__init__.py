"""Runs over time: each in numbers, its cases, where the scores of an agent moved, and where they are going. Pure."""
