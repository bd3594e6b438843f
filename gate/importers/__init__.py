"""Importers for suites of other tools: EvalView, promptfoo, DeepEval, Pydantic Evals, Inspect, OpenAI Evals and others.

The core imports nothing from here. Formats are loaded by their names in `gate.suites.FORMATS`.
"""
