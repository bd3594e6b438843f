"""Which servers may be reached, how they are told, and where recordings lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from gate.errors import ConfigError
from gate.world.options import WorldOptions, store_folder, upstreams_of


def test_the_providers_are_known_by_themselves() -> None:
    found = upstreams_of(WorldOptions(), {})
    assert {name: one.url for name, one in found.items()} == {
        "openai": "https://api.openai.com/v1",
        "anthropic": "https://api.anthropic.com",
        "gemini": "https://generativelanguage.googleapis.com",
    }


def test_the_configuration_goes_before_the_environment_and_that_before_the_default() -> None:
    told = {"OPENAI_BASE_URL": "http://localhost:1/v1/", "ANTHROPIC_BASE_URL": "http://localhost:2"}
    options = WorldOptions.model_validate({"upstreams": {"openai": "https://eu.example/v1"}, "models": "fail"})
    found = upstreams_of(options, told)
    assert (found["openai"].url, found["anthropic"].url) == ("https://eu.example/v1", "http://localhost:2")
    assert found["openai"].answered_by == "fail"


def test_a_tool_has_a_variable_and_a_mode_of_its_own() -> None:
    upstreams = {"order-api": "http://o", "search": {"url": "http://s", "env": "SEARCH", "mode": "live"}}
    found = upstreams_of(WorldOptions.model_validate({"upstreams": upstreams, "tools": "replay"}), {})
    assert (found["order-api"].told, found["order-api"].answered_by) == (("GATE_WORLD_ORDER_API",), "replay")
    assert (found["search"].told, found["search"].answered_by) == (("SEARCH",), "live")


def test_what_cannot_work_is_refused() -> None:
    for wrong in [
        {"upstreams": {"a": "ftp://x"}},
        {"upstreams": {"a": "http://x?key=1"}},
        {"upstreams": {"a/b": "http://x"}},
        {"normalise": ["ticket"]},
        {"models": "maybe"},
        {"port": 70_000},
    ]:
        with pytest.raises(ValidationError):
            WorldOptions.model_validate(wrong)


def test_recordings_lie_outside_the_project_unless_it_says_so(tmp_path: Path) -> None:
    folder = store_folder(WorldOptions(), tmp_path, {"HOME": "/home/me"})
    assert folder == Path("/home/me/.cache/agent-gate/world")
    assert store_folder(WorldOptions(), tmp_path, {"XDG_CACHE_HOME": "/c"}) == Path("/c/agent-gate/world")
    assert store_folder(WorldOptions(store="kept"), tmp_path, {}) == tmp_path / "kept"
    with pytest.raises(ConfigError, match=r"world\.store"):
        store_folder(WorldOptions(), tmp_path, {})
