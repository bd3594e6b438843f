"""The environment variables that other people's code may see, and those that it never may."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate
from functools import lru_cache

ALWAYS_ALLOWED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "VIRTUAL_ENV",
    "SYSTEMROOT",
    "PYTHONPATH",
    "PYTHONHASHSEED",
)
"""The variables that a child process always sees: paths and locale, no secrets."""
TOKEN = "INPUT_TOKEN"  # noqa: S105  (its name)
"""The token that the action signs in with."""
ARTIFACT = "INPUT_ARTIFACT"
"""The name of the artifact with the results of the action's job."""
UNKNOWN_CI = "an unknown CI system"
CI_SYSTEMS = {
    "GITHUB_ACTIONS": "GitHub Actions",
    "GITLAB_CI": "GitLab CI",
    "JENKINS_URL": "Jenkins",
    "CIRCLECI": "CircleCI",
    "TF_BUILD": "Azure Pipelines",
    "BITBUCKET_BUILD_NUMBER": "Bitbucket Pipelines",
    "BUILDKITE": "Buildkite",
    "CI": UNKNOWN_CI,
}
"""Variable by which a CI system identifies itself → its name; the one that most set comes last."""
_NEVER = (
    "INPUT_*",
    "ACTIONS_*",
    "GIT_CONFIG_*",
    "GITHUB_OUTPUT",
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_STATE",
)
"""The action's own: its inputs, the runner's tokens, the header that git signs in with, and the files that steer later
steps. A change writes its own configuration, so naming one of them there does not permit it."""
_BY_NAME_ALONE = ("GITHUB_TOKEN",)
"""Matched by no pattern, only by its exact name: the value is what the workflow itself set, never the action's
token."""


_OF_EACH_RUN = ("GITHUB_*", "RUNNER_*", "CI_*", "GITLAB_*", "CIRCLE_*", "BITBUCKET_*", "BUILDKITE_*", "JENKINS_*")
_OF_EACH_SHELL = ("HOSTNAME", "OLDPWD", "PWD", "SHLVL", "_")
_ON_DEMAND = ("schedule", "workflow_dispatch", "repository_dispatch")
"""GitHub events that no change triggers."""
_OF_CHANGES = ("push", "merge_request_event", "external_pull_request_event", "parent_pipeline")
"""Sources of GitLab pipelines in which a change's code runs."""


_PERHAPS_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(?:\A|_)(?:PASS|CREDS?)(?:_|\Z)|_PWD(?:_|\Z)", re.IGNORECASE
)
_SECRET_WORDS = re.compile(
    r"(?:API|ACCESS|PRIVATE|SECRET)?KEYS?|TOKEN|SECRETS?|\w*PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?"
)
"""The last words of secrets' names; `TOKENS` is not one, because it ends the names of limits."""
_NUMBER = re.compile(r"ID|V?\d+")
"""A word that may follow a secret word: one of several keys, or the name of a key pair."""


@lru_cache(maxsize=64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that matches whatever any of these matches; nothing if there are none."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


def in_ci(environment: Mapping[str, str]) -> bool:
    """True if this runs in a CI job, whose clone is thrown away."""
    return bool(ci_system(environment))


def ci_system(environment: Mapping[str, str]) -> str:
    """Return the name of the CI system whose job this is; empty outside of CI."""
    for variable, name in CI_SYSTEMS.items():
        if environment.get(variable, "").lower() not in ("", "0", "false"):
            return name
    return ""


def is_on_demand(environment: Mapping[str, str]) -> bool:
    """True if this CI job was started by a schedule or on request, not by a change."""
    source = environment.get("CI_PIPELINE_SOURCE", "")
    return environment.get("GITHUB_EVENT_NAME", "") in _ON_DEMAND or source not in ("", *_OF_CHANGES)


def is_withheld(name: str) -> bool:
    """True if a variable is never passed on, even if the configuration names it."""
    return _any_of(_NEVER).match(name) is not None


def varies_by_run(name: str) -> bool:
    """True if CI systems or shells set a variable anew in each run, so that its value says nothing of an agent."""
    return _any_of((*_OF_EACH_RUN, *_OF_EACH_SHELL)).match(name) is not None


def is_allowed(name: str, patterns: tuple[str, ...]) -> bool:
    """True if these patterns allow a variable to be passed on."""
    if is_withheld(name):
        return False
    return name in patterns or (name not in _BY_NAME_ALONE and _any_of(patterns).match(name) is not None)


def handed_on(environment: Mapping[str, str], patterns: tuple[str, ...]) -> dict[str, str]:
    """Return the variables that these patterns let through."""
    return {name: value for name, value in environment.items() if is_allowed(name, patterns)}


def may_be_secret(name: str) -> bool:
    """True if a variable's value has to be masked: in doubt, it is."""
    return _PERHAPS_SECRET.search(name) is not None


def is_secret(name: str) -> bool:
    """True if a variable holds a secret and nothing that decides what an agent does: in doubt, it does not.

    The last word of its name says so, apart from numbers: `API_KEY` and `API_KEY_2`, but neither `KEY_FILE` nor
    `KEYWORDS`.
    """
    words = re.split(r"[^A-Z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper())
    while len(words) > 1 and (not words[-1] or _NUMBER.fullmatch(words[-1])):
        words.pop()
    return _SECRET_WORDS.fullmatch(words[-1]) is not None
