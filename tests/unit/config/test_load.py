"""The configuration file: what is accepted, what is refused, and the schema that says the same to an editor."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gate.config.json_schema import in_lines, json_schema
from gate.config.load import load_config, read_config
from gate.config.removed import REMOVED
from gate.config.schema import File, TrialsSection
from gate.errors import ConfigError
from gate.formats.documents import read_document_with_lines
from gate.metrics import METRICS

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(ROOT.glob("examples/*/gate.yaml"))
MINIMAL = {"suite": "evals", "agent": {"python": "a:b"}}


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def load(tmp_path: Path, data: Any, **overrides: Any) -> File:
    path = tmp_path / "gate.yaml"
    path.write_text(yaml.safe_dump(data))
    return load_config(path, overrides).file


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_examples_hold_to_the_schema_and_load(path: Path, validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(yaml.safe_load(path.read_text()))
    load_config(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"critera": {}},
        {"crit[eria": {}},
        {"criteria": {}},
        {"criteria": {"response_match_score": {"treshold": 1}}},
        {"criteria": {"latencyy": 3}},
        {"criteria": {"latencyy": {"max": 3}}},
        {"judge": {"timeout": []}},
        {"judge": {"numSamples": 3}},
        {"criteria": {"tool_trajectory_avg_score": {"matchType": 1}}},
        {"agent": {"python": "a:b", "timout": 1}},
        {"gate": {"alpha": 2}},
        {"trials": "some"},
        {"select": {"tag": ["x"]}},
        {"suite": []},
        {"budget": {"usd": 0}},
        {"quarantine": [{"case": "x", "owner": "me", "expires": "2030-01-01"}]},
        {"executor": "remote"},
        {"baseline": {"store": "git", "bucket": "s3://here"}},
        {"agent": {"replay": True}, "executor": {"processes": 0}},
        {"agent": {"replay": True}, "executor": {"ray": "somewhere"}},
    ],
    ids=str,
)
def test_schema_and_loader_refuse_the_same(
    wrong: dict[str, Any], validator: jsonschema.Draft202012Validator, tmp_path: Path
) -> None:
    data = {**MINIMAL, **wrong}
    assert list(validator.iter_errors(data))
    if "criteria" not in wrong or not wrong["criteria"]:  # a criterion's options are checked with its suite
        with pytest.raises(ConfigError):
            load(tmp_path, data)


def undescribed(schema: Any, path: str = "") -> Iterator[str]:
    """The properties below a schema that say nothing of themselves."""
    if isinstance(schema, list):
        for item in schema:
            yield from undescribed(item, path)
    elif isinstance(schema, dict):
        for name, inner in schema.get("properties", {}).items():
            if isinstance(inner, dict) and "description" not in inner and "$ref" not in inner:
                yield f"{path}.{name}"
        for key, inner in schema.items():
            if key not in ("if", "default", "examples"):
                yield from undescribed(inner, f"{path}.{key}")


def test_the_schema_describes_every_key(validator: jsonschema.Draft202012Validator) -> None:
    schema = validator.schema
    assert list(undescribed(schema)) == []
    text = in_lines(schema)
    assert json.loads(text) == schema
    assert text.count("\n") < 4_000  # short enough to be looked through in an editor
    assert in_lines({"title": "≥ 1"}) == '{"title": "≥ 1"}'
    trajectory = schema["properties"]["criteria"]["anyOf"][1]["properties"]["tool_trajectory_avg_score"]
    assert trajectory["description"].startswith("1 for a turn whose tool calls match")
    options = schema["$defs"]["TrajectoryOptions"]["anyOf"][1]["properties"]
    assert options["credit"] == {
        "description": options["credit"]["description"],
        "default": "none",
        "enum": ["none", "f1", "precision", "recall"],
        "type": "string",
    }
    assert "share of calls in common" in options["credit"]["description"]


@pytest.mark.slow
def test_the_schema_knows_every_metric(validator: jsonschema.Draft202012Validator) -> None:
    (_, criteria) = json_schema()["properties"]["criteria"]["anyOf"]
    assert set(criteria["properties"]) == set(METRICS)
    validator.validate({**MINIMAL, "criteria": {"latency": {"p95": 3, "max": 10}, "tool_accuracy": 0.5}})


def test_the_schema_leaves_the_options_of_a_store_that_a_package_adds_to_it(
    validator: jsonschema.Draft202012Validator,
) -> None:
    validator.validate({**MINIMAL, "baseline": {"store": "of-a-package", "anything": 1}})
    assert not validator.is_valid({**MINIMAL, "baseline": {"store": "git", "anything": 1}})


@pytest.mark.parametrize(
    "right",
    [
        {"agent": {"command": "node agent.js"}},
        {"agent": {"command": ["node", "agent.js"]}},
        {"agent": {"http": "http://localhost:8000/ask"}},
        {"agent": {"http": {"url": "http://localhost:8000/ask", "headers": {"a": "b"}}}},
        {"agent": {"python": "a:b", "env": "OPENAI_*", "sources": "*.py", "path": "src"}},
        {"judge": {"timeout": "60s", "base_url": "http://x", "num_samples": 3}},
        {"select": {"tags": "a", "ids": ["b*"], "complexity": "simple"}},
        {"criteria": {"checks.polite": 0.5, "checks:polite": {"threshold": 1, "run_in": "agent"}}},
        {"criteria": {"mine": {"metric": "latency", "max": 3}, "RESPONSE_MATCH_SCORE": 0.5}},
        {"fields": {"expected_tools": "expected"}},
        {"agent": {"replay": True}, "executor": {"processes": 2}},
        {"agent": {"replay": True}, "executor": {"ray": "127.0.0.1:6379"}},
        {"criteria": {"tool_trajectory_avg_score": {"args": "ignore", "tools": {"pay": {"match": "subset"}}}}},
        {
            "criteria": {
                "contains": {"values": "x", "ignore_case": True},
                "tool_trajectory_avg_score": {"match_type": 1},
            }
        },
    ],
    ids=str,
)
def test_schema_and_loader_accept_the_same(
    right: dict[str, Any], validator: jsonschema.Draft202012Validator, tmp_path: Path
) -> None:
    validator.validate({**MINIMAL, **right})
    load(tmp_path, {**MINIMAL, **right})


BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if page.stem != "extend"  # its names are unknown without its package; tests/acceptance/test_plugins.py
    for number, block in enumerate(re.findall(r"^```ya?ml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL), 1)
    if re.search(r"^suite:", block, re.MULTILINE) and re.search(r"^agent:", block, re.MULTILINE)
    if ": null}" not in block  # it leaves out a criterion of the suite's files, which are not here
]


@pytest.mark.parametrize("block", BLOCKS)
def test_every_whole_configuration_in_the_guide_holds_to_the_schema_and_loads(
    block: str, validator: jsonschema.Draft202012Validator, tmp_path: Path
) -> None:
    path = tmp_path / "gate.yaml"
    path.write_text(block)
    data, _ = read_document_with_lines(path)
    if isinstance(data.get("criteria"), str):
        (tmp_path / data["criteria"]).write_text('{"criteria": {"response_match_score": 0.5}}')
    validator.validate(data)
    load_config(path)


def test_the_guide_shows_whole_configurations() -> None:
    assert BLOCKS


def test_one_suite_or_several(tmp_path: Path) -> None:
    assert load(tmp_path, {**MINIMAL, "suite": "evals"}).suite == ["evals"]
    assert load(tmp_path, {**MINIMAL, "suite": ["a", "b"]}).suite == ["a", "b"]


def test_an_unknown_override_is_not_sought_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^overrides: unknown key 'trails' \(did you mean 'trials'\?\)$"):
        load(tmp_path, MINIMAL, trails=2)


def test_overrides_are_validated_with_the_file(tmp_path: Path) -> None:
    file = load(tmp_path, {**MINIMAL, "select": {"tags": ["x"]}}, **{"select.ids": ["a*"], "trials": 5})
    assert file.trials == 5
    assert file.select is not None
    assert (file.select.tags, file.select.ids) == (["x"], ["a*"])
    with pytest.raises(ConfigError, match="trials"):
        load(tmp_path, MINIMAL, trials=0)


def test_what_an_option_says_wrongly_is_told_of_the_option(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, {**MINIMAL, "trials": 3}, trials="five")
    assert str(caught.value) == "--trials: 'five' is neither 'auto' nor a whole number from 1"
    with pytest.raises(ConfigError, match=r"gate\.yaml:\d: trials: 'five' is neither"):
        load(tmp_path, {**MINIMAL, "trials": "five"})


@pytest.mark.parametrize("value", [0, 101, 2.5, "many", None])
def test_the_most_epochs_are_told_of_as_such(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ConfigError, match=r"gate\.yaml:\d: trials: max must be a whole number from 1 to 100$"):
        load(tmp_path, {**MINIMAL, "trials": {"max": value}})


def test_what_is_no_number_of_trials_is_told_of_with_what_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"trials: unknown key 'most' \(known: max\)$"):
        load(tmp_path, {**MINIMAL, "trials": {"max": 3, "most": 3}})
    for value in (2.5, [1]):
        with pytest.raises(ConfigError, match=r"trials: .* is neither 'auto' nor a whole number from 1$"):
            load(tmp_path, {**MINIMAL, "trials": value})
    with pytest.raises(ConfigError, match=r"trials: a number of trials is between 1 and 1000$"):
        load(tmp_path, {**MINIMAL, "trials": True})
    assert load(tmp_path, {**MINIMAL, "trials": {"max": 7}}).trials == TrialsSection(max=7)


def test_a_list_of_hosts_has_names_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"publish: expected names of hosts, found a mapping \(as in publish: "):
        load(tmp_path, {**MINIMAL, "publish": [{"github": {}}]})
    assert load(tmp_path, {**MINIMAL, "publish": ["github"]}).publish == {"github": {}}


@pytest.mark.parametrize("wrong", [{"gate": {"pass_rate": 0.85}}, {"pass_rate": 0.85}])
def test_a_limit_on_the_pass_rate_is_sent_to_the_criteria(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"unknown key '(gate\.)?pass_rate' \(.*under criteria: `pass_rate: 0.85`\)"):
        load(tmp_path, {**MINIMAL, **wrong})


def test_criteria_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "test_config.json").write_text(
        '{"criteria": {"mine": 0.5}, "custom_metrics": {"mine": {"code_config": {"name": "checks.mine"}}}}'
    )
    file = load(tmp_path, {**MINIMAL, "criteria": "test_config.json"})
    assert file.criteria == {"mine": {"metric": "checks.mine", "threshold": 0.5}}
    with pytest.raises(ConfigError, match="does not exist"):
        load(tmp_path, {**MINIMAL, "criteria": "other.json"})


def test_errors_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "gate.yaml"
    path.write_text("suite: evals\nagent: {python: 'a:b'}\ngate:\n  alpha: 0.02\n  on_inconclusive: maybe\n")
    with pytest.raises(ConfigError, match=r"gate\.yaml:5"):
        load_config(path)


def test_every_key_is_in_the_guide() -> None:
    guide = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    for key in File.model_fields:
        assert f"`{key}" in guide, key


def removed(path: str, at: dict[str, Any]) -> dict[str, Any]:
    for key in reversed(path.replace("*", "contains").split(".")):
        at = {key: at}
    return at


@pytest.mark.parametrize("path", REMOVED)
def test_a_removed_key_is_refused_with_what_to_do_and_ignored_at_the_base(tmp_path: Path, path: str) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(yaml.safe_dump({**MINIMAL, **removed(path, {"any": 1})}))
    with pytest.raises(ConfigError, match="was removed") as caught:
        read_config(file)
    assert caught.value.hint == REMOVED[path]
    assert caught.value.where.startswith(f"{file}:")
    assert path.rpartition(".")[2] not in str(read_config(file, of_base=True).data)


def test_removed_keys_of_criteria_are_found_in_their_own_file(tmp_path: Path) -> None:
    (tmp_path / "test_config.json").write_text('{"criteria": {"contains": {"strict": true}}}')
    with pytest.raises(ConfigError, match=r"criteria\.contains\.strict was removed") as caught:
        load(tmp_path, MINIMAL | {"criteria": "test_config.json"})
    assert caught.value.where == str(tmp_path / "test_config.json")


def test_keys_that_decide_nothing_any_more_are_unknown_elsewhere(tmp_path: Path) -> None:
    for data in ({"gate": {"strict": True}}, {"strict": True}, {"on_tradeoff": "warn"}):
        with pytest.raises(ConfigError):
            load(tmp_path, MINIMAL | data)


def test_a_base_address_needs_an_agent_with_an_address(tmp_path: Path) -> None:
    base = "http://127.0.0.1:1"
    with pytest.raises(ConfigError, match="a python: agent has no address"):
        load(tmp_path, {**MINIMAL, "agent": {"python": "a:b", "base": base}})
    assert load(tmp_path, {**MINIMAL, "agent": {"http": "http://127.0.0.1:2", "base": base}}).agent["base"] == base
