"""Suites of other tools: EvalView, promptfoo, DeepEval, Pydantic Evals, Inspect, OpenAI Evals, AgentCore and others.

An extra: nothing here is imported by the core. Formats are loaded by the names in `gate.suites.FORMATS`.
"""
