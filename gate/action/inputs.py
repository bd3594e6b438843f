"""The inputs of the action: names, defaults and allowed values; tests compare them with `action.yml` and the guide."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from gate.config import FILE_NAME
from gate.errors import ConfigError, nearest
from gate.hosts.events import ACCEPT_LABEL
from gate.pipeline.session import parse_shard
from gate.security.environment import is_withheld
from gate.security.files import OWN_FOLDER
from gate.security.limits import shorten

DIGITS = 9
PATH_BYTES, NAME_BYTES = 1_000, 255
"""Maximum number of bytes in a path below the workspace, and in each of its names."""
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RUNNERS_OWN = re.compile(r"RUNNER_|GITHUB_(?!TOKEN$)")
"""Variables that only the runner may set. `GITHUB_TOKEN` is not among them: a workflow may pass it on."""
MASKED_CHARS = 8
"""Minimum number of characters in a masked value: masking a shorter one, such as `1`, would blank ordinary text."""


class Input(Struct, frozen=True):
    """An input of the action: its default, as in ``action.yml``, and the function that parses its text."""

    default: str
    read: Callable[[str], Any]


def text(value: str) -> str:
    return value


def path(value: str) -> str:
    """Return the path if its length suits every file system, so that every place that uses it finds the same file."""
    if len(os.fsencode(value)) > PATH_BYTES or any(len(os.fsencode(name)) > NAME_BYTES for name in value.split("/")):
        raise ConfigError(f"{shorten(value, 50)!r} is too long for a path")
    return value


def words(value: str) -> list[str]:
    """Return the words of a text, separated by commas or lines."""
    return [word.strip() for word in value.replace("\n", ",").split(",") if word.strip()]


def variables(value: str) -> dict[str, str]:
    """Return environment variables from lines ``NAME=value``. An empty value leaves its variable unset.

    Errors never quote a line: its value is usually a secret.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(value.splitlines(), 1):
        if not line.strip():
            continue
        name, equals, content = (part.strip() for part in line.partition("="))
        if not equals or not VARIABLE.fullmatch(name):
            raise ConfigError(f"line {number} is not of the form NAME=value")
        if is_withheld(name) or RUNNERS_OWN.match(name):
            raise ConfigError(f"{shorten(name, 50)} belongs to the runner and cannot be set")
        if content:
            found[name] = content
    return found


def one_of(*known: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value and value not in known:
            raise ConfigError(f"unknown value {shorten(value, 50)!r}", hint=nearest(value[:50], list(known)))
        return value

    return read


def switch(value: str) -> bool:
    return one_of("true", "false")(value) == "true"


def trials(value: str) -> int | str:
    return int(value) if is_number(value) else one_of("auto")(value)


def shard(value: str) -> tuple[int, int]:
    return parse_shard(value) if value else (1, 1)


def is_number(value: str) -> bool:
    """True if the text has only digits, and few enough to be plausible."""
    return value.isascii() and value.isdigit() and len(value) <= DIGITS


INPUTS: dict[str, Input] = {
    "config": Input(FILE_NAME, path),
    "name": Input("", text),
    "setup": Input("", text),
    "setup_cache": Input(f"{OWN_FOLDER}/setup", path),
    "env": Input("", variables),
    "tags": Input("", words),
    "trials": Input("", trials),
    "shard": Input("", shard),
    "shards": Input("", path),
    "on_inconclusive": Input("", one_of("warn", "block")),
    "on_missing_baseline": Input("", one_of("warn", "fail")),
    "on_publish_error": Input("warn", one_of("warn", "fail")),
    "comment": Input("true", switch),
    "accept_label": Input(ACCEPT_LABEL, text),
    "artifact": Input("gate-results", text),
    "token": Input("", text),
}
"""Every input of the action; tests compare the README, ``action.yml`` and the guide with this table."""
REMOVED_INPUTS = {"check_run": "leave it out: the job, its comment and its annotations show each suite"}
"""Inputs that earlier versions had, each with what to do instead."""


def read_inputs(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the inputs as passed by the runner. Raises ConfigError for an unknown name or value."""
    given = {name.removeprefix("INPUT_").lower(): value for name, value in environment.items() if is_input(name)}
    for name in given:
        if name in REMOVED_INPUTS:
            raise ConfigError(f"{name} was removed", where="with", hint=REMOVED_INPUTS[name])
        if name not in INPUTS:
            raise ConfigError(f"unknown input {name!r}", where="with", hint=nearest(name, list(INPUTS)))
    found = {}
    for name, kind in INPUTS.items():
        value = given.get(name, kind.default).strip()
        try:
            found[name] = kind.read(value)
        except ConfigError as error:
            raise ConfigError(error.what, where=f"with: {name}", hint=error.hint) from None
    return found


def values_to_mask(environment: Mapping[str, str]) -> list[str]:
    """Return the values in the input ``env`` that the runner should mask, even if the input is refused later."""
    found = []
    for line in environment.get("INPUT_ENV", "").splitlines():
        value = line.partition("=")[2].strip()
        if len(value) >= MASKED_CHARS:
            found.append(value)
    return found


def is_input(name: str) -> bool:
    return name.startswith("INPUT_")


def overrides_of(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs that correspond to keys of the configuration, so that there is only one validation."""
    keys = {
        "name": inputs["name"],
        "select.tags": inputs["tags"],
        "trials": inputs["trials"],
        "gate.on_inconclusive": inputs["on_inconclusive"],
        "baseline.on_missing": inputs["on_missing_baseline"],
    }
    return {key: value for key, value in keys.items() if value not in ("", [])}
