"""Remedies for an agent or a judge that could not be called, by the text of the error."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gate.agents.base import UNKNOWN_MODEL

START = "start the server, then: gate run"
REMEDIES = (
    (r"\(install it in [^)]*\)", "install it there, then: gate run"),
    (
        r"No module named|cannot import the agent",
        "install it where the gate runs, or name the agent's own environment: agent.executable: .venv",
    ),
    (
        r"closed before an answer",
        "read the server's log; it may expect another request (gate help agent), then: gate run",
    ),
    (UNKNOWN_MODEL.pattern, "correct the model's name, or name one that the key may use, then: gate run"),
    (r"refused|cannot connect|connection|unreachable|name or service", START),
    (r"no answer within|timed out|timeout", "allow more time under agent.timeout, and run: gate run"),
    (r"\bHTTP 404\b|no agent card", "check the address and its path under agent in gate.yaml"),
)
KEY = re.compile(r"api.?key|credential|unauthorized|\b401\b|authenticat", re.IGNORECASE)
KEY_NAME = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:API_KEY|TOKEN)\b")

PROVIDERS = (
    ("GOOGLE", r"\bgemini\b", r"ai\.google|gemini|genai"),
    ("ANTHROPIC", r"\banthropic[:/]|Anthropic|(?:[\"']|: )claude-\w", r"anthropic|claude"),
    ("OPENAI", r"\bopenai[\w-]*[:/]|OpenAI|(?:[\"']|: )gpt-\d", r"openai"),
    ("GROQ", r"\bgroq[:/]|Groq\b", r"groq"),
    ("MISTRAL", r"\bmistral(?:ai)?[:/]|Mistral", r"mistral"),
)
"""Prefix of a provider's variables → the patterns of its traces in code, and in errors that do not name its key."""


def remedy_for(
    error: str, config: str, environment: Mapping[str, str], *, start: str = "", again: str = "gate init"
) -> str:
    """Return one line; empty if no remedy is known. It names variables, but never shows their values.

    ``start`` is the command that starts the agent's server, ``again`` the one that was run.
    """
    if error.startswith("judge:"):
        return ""  # the message already states the remedy
    if KEY.search(error):
        named = sorted(set(KEY_NAME.findall(error)))
        known = [f"{name}_API_KEY" for name, _, pattern in PROVIDERS if re.search(pattern, error, re.IGNORECASE)]
        name = [*named, *known, "the key of your provider"][0]
        if name in environment:
            return f"pass {name} to the agent: agent.env: [{name}] in {config}"
        return f"set {name} here and in CI ({config} passes on what agent.env lists), then: {again}"
    found = next((remedy for pattern, remedy in REMEDIES if re.search(pattern, error, re.IGNORECASE)), "")
    if start and found == START:
        return f"start the server in another terminal ({start}), then: {again}"
    return found
