"""The remedies of `gate init` for a key that is missing."""

from __future__ import annotations

import pytest

from gate.commands.setup.remedies import remedy_for


@pytest.mark.parametrize(
    ("error", "name"),
    [
        ("No API key was provided. Learn how to create an API key at https://ai.google.dev", "GOOGLE_API_KEY"),
        ("Could not resolve authentication: anthropic needs an api_key", "ANTHROPIC_API_KEY"),
        ("set ACME_API_KEY: openai is unauthorized", "ACME_API_KEY"),
        ("unauthorized", "the key of your provider"),
    ],
)
def test_a_missing_key_is_named_even_if_the_provider_does_not(error: str, name: str) -> None:
    assert remedy_for(error, "gate.yaml", {}).startswith(f"set {name} here and in CI")


def test_what_is_missing_in_the_agents_environment_is_to_be_installed_there() -> None:
    error = "agent.python: cannot import the agent: No module named 'x' (bot.py:1) (install it in .venv)"
    assert remedy_for(error, "gate.yaml", {}) == "install it there, then: gate run"


def test_a_server_that_crashes_is_not_to_be_started_again() -> None:
    error = "crash: the connection closed before an answer came; the server's own log says why"
    assert "start the server" not in remedy_for(error, "gate.yaml", {}, start="flask run")


def test_a_key_that_is_set_has_to_be_handed_on() -> None:
    found = remedy_for("genai: no API key", "gate.yaml", {"GOOGLE_API_KEY": "secret"})
    assert found == "pass GOOGLE_API_KEY to the agent: agent.env: [GOOGLE_API_KEY] in gate.yaml"


def test_an_unknown_model_is_not_a_wrong_address() -> None:
    error = "setup: HTTP 404: The model `gpt-99` does not exist"
    assert remedy_for(error, "gate.yaml", {}).startswith("correct the model's name")
    assert remedy_for("setup: HTTP 404: Not Found", "gate.yaml", {}).startswith("check the address")


def test_a_crash_that_finds_something_missing_is_not_a_wrong_address() -> None:
    assert remedy_for("crash: ValueError: Template variable 'question' not found in inputs", "gate.yaml", {}) == ""
