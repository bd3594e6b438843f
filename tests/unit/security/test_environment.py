"""Which variables reach other people's code, whatever a configuration asks for."""

from __future__ import annotations

import os

import pytest

from gate.agents.base import allowed_environment, expand
from gate.errors import ConfigError
from gate.judges.options import JudgeOptions, members
from gate.security.environment import in_ci, is_secret, is_withheld, may_be_secret

OWN = {
    "INPUT_TOKEN": "t",
    "ACTIONS_RUNTIME_TOKEN": "r",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "i",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_VALUE_0": "AUTHORIZATION: basic x",
    "GITHUB_OUTPUT": "/o",
    "GITHUB_ENV": "/e",
    "GITHUB_PATH": "/p",
    "GITHUB_STEP_SUMMARY": "/s",
    "GITHUB_STATE": "/st",
}
OUTSIDE = {**OWN, "GITHUB_TOKEN": "theirs", "GITHUB_SHA": "abc", "OPENAI_API_KEY": "k"}


@pytest.mark.parametrize("patterns", [("*",), ("GIT*", "INPUT_*", "ACTIONS_*"), ("GITHUB_*",)])
def test_no_pattern_lets_the_actions_own_through(patterns: tuple[str, ...]) -> None:
    allowed = allowed_environment(OUTSIDE, patterns)
    assert not allowed.keys() & {*OWN, "GITHUB_TOKEN"}
    assert allowed["GITHUB_SHA"] == "abc"


@pytest.mark.parametrize("name", OWN)
def test_nor_does_its_exact_name(name: str) -> None:
    assert is_withheld(name)
    assert allowed_environment(OUTSIDE, (name,)) == {}
    with pytest.raises(ConfigError, match=f"{name} is reserved for the action"):
        expand(f"Bearer ${{{name}}}", OUTSIDE, where="agent.http.headers.X")
    with pytest.raises(ConfigError, match=name):
        members(JudgeOptions(api_key_env=name, base_url="http://judge.example", model="m"), OUTSIDE)


def test_a_workflows_own_token_goes_to_who_names_it() -> None:
    assert allowed_environment(OUTSIDE, ("GITHUB_TOKEN",)) == {"GITHUB_TOKEN": "theirs"}
    assert expand("Bearer ${GITHUB_TOKEN}", OUTSIDE, where="x") == "Bearer theirs"


def test_no_test_sees_the_job_that_runs_it() -> None:
    """`.ci/run` says that it is one wherever it runs, so this fails there if the tests' own set-up forgets one."""
    assert not in_ci(os.environ)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("OPENAI_API_KEY", True),
        ("OPENAI_APIKEY", True),
        ("openai_api_key", True),
        ("openaiApiKey", True),
        ("API_KEYS", True),
        ("API_KEY_2", True),
        ("AWS_ACCESS_KEY_ID", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("AWS_SESSION_TOKEN", True),
        ("TOKEN", True),
        ("KEY_", True),
        ("CLIENT_SECRET", True),
        ("SECRETS", True),
        ("DB_PASSWORD", True),
        ("PGPASSWORD", True),
        ("SSH_PASSPHRASE", True),
        ("GOOGLE_APPLICATION_CREDENTIALS", True),
        ("KEYWORDS_FILE", False),
        ("KEY_FILE", False),
        ("KEYBOARD", False),
        ("MONKEY", False),
        ("MAX_TOKENS", False),
        ("TOKEN_LIMIT", False),
        ("TOKENIZER", False),
        ("SECRETARY_NAME", False),
        ("PASSENGERS", False),
        ("COMPASS", False),
        ("MODEL_ID", False),
        ("MODEL_2", False),
        ("2", False),
    ],
)
def test_the_last_word_of_a_name_tells_a_secret(name: str, secret: bool) -> None:
    assert is_secret(name) == secret
    assert may_be_secret(name) or not secret, "what is no part of an agent is masked"


@pytest.mark.parametrize("name", ["DB_PASS", "PASS", "SMTP_PASS_2", "DB_PWD", "AWS_CREDS", "PRIVATE_KEY_PEM"])
def test_what_may_be_a_secret_is_masked(name: str) -> None:
    assert may_be_secret(name)
    assert not any(map(may_be_secret, ("PWD", "OLDPWD", "COMPASS", "PASSENGERS", "HOME", "CREDO")))
