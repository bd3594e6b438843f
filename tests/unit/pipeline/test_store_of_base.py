"""Which store a change is compared by: the base commit's, whatever the change states or commits."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.baselines import STORES
from gate.baselines.base import StoreOptions
from gate.baselines.blobs import BlobStore
from gate.config.base_policy import Rules, read_base, under_base_policy
from gate.config.load import read_config
from gate.config.schema import BaselineSection
from gate.model.strictness import FREE
from gate.pipeline.store import store_kind
from tests.properties import examples

CI = {"CI": "true"}
FOLDER = ".gate/baselines"
KEY = (
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----"
)
VALUES: dict[str, list[Any]] = {
    "store": ["file", "git", "none"],
    "path": [FOLDER, "elsewhere"],
    "branch": ["gate-baselines", "other"],
    "endpoint": ["https://one.example", "https://two.example"],
    "url": ["s3://one", "s3://two"],
    "remote": ["origin", "other"],
    "on_missing": ["warn", "fail"],
    "rerun": ["auto", "never"],
    "against": ["HEAD", "main"],
    "trials": ["auto", "off", 3],
    "power": [{"drop": 0.2, "find": 0.8}, {"drop": 0.5}],
    "accept_days": [1, 90, 360],
    "require_provenance": ["off", "warn", "block"],
    "key": ["", KEY],
    "workflows": [[], ["a.yml"]],
}
STRICTER = {"on_missing", "accept_days", "require_provenance", "against"}
"""Keys of which the change's own value may hold; none of them says which store is read."""
SECTION = st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in VALUES.items()})


def test_every_key_of_the_section_is_tried() -> None:
    models = [BaselineSection, *(STORES.load(name).Options for name in STORES)]
    assert {name for model in models for name in model.model_fields} <= set(VALUES)


@pytest.fixture(scope="module")
def clone() -> Iterator[Path]:
    """A clone with a remote."""
    with TemporaryDirectory() as folder:
        git(Path(folder), "init", "-q")
        git(Path(folder), "remote", "add", "origin", "https://example.com/a.git")
        yield Path(folder)


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True)


def written(root: Path, section: dict[str, Any]) -> Path:
    root.mkdir(exist_ok=True)
    (root / "suite.yaml").write_text(yaml.safe_dump({"cases": [{"id": "a", "input": "a", "response": "x"}]}))
    path = root / "gate.yaml"
    data = {
        "name": "s",
        "suite": "suite.yaml",
        "agent": {"command": "true"},
        "criteria": {"contains": {"values": ["x"]}},
    }
    path.write_text(yaml.safe_dump({**data, **({"baseline": section} if section else {})}))
    return path


def under(clone: Path, base: Path, before: dict[str, Any], now: dict[str, Any]) -> Rules:
    source = read_config(written(clone, now))
    return under_base_policy(source, {}, read_base(written(base, before), source, {}))


@pytest.mark.slow
@given(before=SECTION, now=SECTION, committed=st.booleans(), in_base=st.booleans())
@settings(deadline=None, max_examples=examples(80), suppress_health_check=list(HealthCheck))
def test_the_store_that_is_read_is_the_bases(
    clone: Path, before: dict[str, Any], now: dict[str, Any], committed: bool, in_base: bool
) -> None:
    with TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        for root, has in ((clone, committed), (base, in_base)):
            shutil.rmtree(root / FOLDER, ignore_errors=True)
            if has:
                (root / FOLDER).mkdir(parents=True)
                (root / FOLDER / "a.jsonl").write_text("x")
        git(clone, "add", "-A")
        rules = under(clone, base, before, now)
        held = rules.config.file.baseline
        kept_to = "store" in before or "path" in before or in_base or before.get("remote") == "other"
        assert store_kind(rules.config, CI) == (before.get("store", "file") if kept_to else "git")
        plain = held.model_dump(exclude_unset=True)
        assert {k: v for k, v in plain.items() if k not in STRICTER} == {
            k: v for k, v in before.items() if k not in STRICTER
        }


@pytest.mark.parametrize("now", [{"store": "file"}, {"store": "git"}, {"store": "none"}, {"path": FOLDER}])
def test_what_the_change_states_is_said_to_hold_once_it_is_merged(
    clone: Path, tmp_path: Path, now: dict[str, Any]
) -> None:
    rules = under(clone, tmp_path / "base", {}, now)
    assert store_kind(rules.config, CI) == "git"
    [said] = rules.changes
    assert said.startswith(f"baseline.{next(iter(now))}: ")
    assert said.endswith("takes effect once it is merged")


def test_an_option_that_a_plugins_store_declares_free_is_the_changes(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Options(StoreOptions):
        place: str = ""
        label: Annotated[str, FREE] = ""

    class Store(BlobStore):
        pass

    Store.Options = Options
    monkeypatch.setitem(STORES._loaded, "own", Store)
    before, now = {"store": "own", "place": "a", "label": "x"}, {"store": "own", "place": "b", "label": "y"}
    rules = under(clone, tmp_path / "base", before, now)
    assert rules.config.file.baseline.options == {"place": "a", "label": "y"}
    assert rules.changes == ('baseline.place: "a" → "b" takes effect once it is merged',)


def test_a_restored_folder_is_kept_to_and_a_committed_one_is_not(clone: Path, tmp_path: Path) -> None:
    """What a cache restored is in no commit: the job of the default branch stored it there, too."""
    rules = under(clone, tmp_path / "base", {}, {})
    record = clone / FOLDER / "s" / "a.jsonl"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("x")
    assert store_kind(rules.config, CI) == "file"
    git(clone, "add", "-A", "--force")
    assert store_kind(rules.config, CI) == "git"
    assert store_kind(replace(rules.config, base_root=None), CI) == "file"
    shutil.rmtree(clone / FOLDER)


def test_what_is_usual_holds_where_the_base_states_nothing(tmp_path: Path) -> None:
    """The action keeps baselines in git; that a change names a store decides nothing."""
    usual = {"baseline.store": "git"}
    for before, store in (({}, "git"), ({"accept_days": 3}, "git"), ({"store": "none"}, "none")):
        source = read_config(written(tmp_path / "head", {"store": "file"}))
        base = read_base(written(tmp_path / "base", before), source, {}, usual)
        assert under_base_policy(source, {}, base).config.file.baseline.store == store
