"""Every option that a change could loosen says which way it tightens, or is held whatever it becomes."""

from __future__ import annotations

from gate.agents.base import AgentOptions
from gate.config.schema import BaselineSection, File, GateSection
from gate.config.specs import Common
from gate.model.strictness import DOWN, FEWER, FREE, MORE, NEVER, OFF, ON, UP, Tightens, strictness_of

OWN = {"name", "suite", "format", "fields", "agent", "setup", "executor", "output", "monitor", "world"}


def test_the_changes_own_keys_are_these_and_no_others() -> None:
    assert {name for name in File.model_fields if strictness_of(File, name) is FREE} == OWN


def test_what_decides_states_its_direction() -> None:
    stated = {name: strictness_of(Common, name) for name in Common.model_fields}
    assert stated["threshold"] is UP
    assert stated["max"] is stated["margin"] is DOWN
    assert (stated["blocking"], stated["ratchet"]) == (ON, OFF)
    assert strictness_of(GateSection, "pass_rate_margin").unset is not None
    assert strictness_of(BaselineSection, "store") is NEVER


def test_options_of_the_agent_that_excuse_its_failures_are_rules() -> None:
    rules = {name for name in AgentOptions.model_fields if strictness_of(AgentOptions, name) is not NEVER}
    assert rules == {"transient", "reports_calls", "base", "user", "reads_suite"}


def test_sets_and_flags() -> None:
    assert MORE.allows(["a"], ["a", "b"]) and not MORE.allows(["a", "b"], ["a"])
    assert FEWER.allows(["a", "b"], ["a"]) and not FEWER.allows(["a"], ["b"])
    assert MORE.strictest(["a", "b"], ["b", "c"]) == ["a", "b", "c"]
    assert FEWER.strictest(["a", "b"], ["b", "c"]) == ["b"]
    assert (UP.strictest(1, 2), UP.strictest(2, 1), NEVER.strictest(1, 2), FREE.strictest(1, 2)) == (2, 2, 1, 2)
    assert FREE.allows(1, 2) and not NEVER.allows(1, 2)
    assert not Tightens("steps", ("a", "b")).allows("a", "c")
