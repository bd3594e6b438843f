import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from gate.agents.base import AgentOptions
from gate.agents.command import CommandOptions
from gate.agents.python import PythonOptions
from gate.baselines.fingerprint import of_agent, of_case, of_criterion, of_json
from gate.errors import ConfigError
from gate.model import Case, Complexity, Location, Part, Rubric, Scenario, ToolCall, Turn
from gate.system.git import Git
from tests.properties import examples

# --- JSON -----------------------------------------------------------------------------------------


def test_it_is_stable_over_versions() -> None:
    assert of_json({"b": [1, 2.5, "ü", None, True], "a": {}}) == "44aa579582fffd976c55a2cc8235129f"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (1, 1.0),
        (0.0, -0.0),
        ((1, 2), [1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        (10**15, 1e15),
    ],
)
def test_spellings_of_one_value_are_one(one: object, other: object) -> None:
    assert of_json(one) == of_json(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (1, "1"),
        (None, "null"),
        ({}, []),
        ([1, 2], [2, 1]),
        ({1: "x"}, {"1": "x"}),
        ({True: "x"}, {"True": "x"}),
        (2**53, 2**53 + 1),
        (0.1 + 0.2, 0.3),
        ("\ud800", "\ud801"),
        (["a", "b"], ["a\x00b"]),
    ],
)
def test_different_values_are_different(one: object, other: object) -> None:
    assert of_json(one) != of_json(other)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [{"x": float("-inf")}]])
def test_no_fingerprint_of_what_equals_nothing(value: object) -> None:
    with pytest.raises(ValueError, match="finite"):
        of_json(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def same(one: object, other: object) -> bool:
    """Equality that tells True from 1."""
    if isinstance(one, bool) or isinstance(other, bool) or type(one) is not type(other):
        both_numbers = isinstance(one, (int, float)) and isinstance(other, (int, float))
        return one == other and (type(one) is type(other) or (both_numbers and bool not in (type(one), type(other))))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@given(json_values, json_values)
def test_equal_exactly_where_the_values_are(one: object, other: object) -> None:
    assert (of_json(one) == of_json(other)) == same(one, other)


# --- cases and criteria ---------------------------------------------------------------------------

CASE = Case(
    id="refund",
    turns=(Turn("hi", (ToolCall("lookup", {"id": 1}),), (Part("Hello"),), (Rubric("r", "is polite"),)),),
    metadata={"m": 1},
    state={"s": 1},
    options={"contains": {"text": "x"}},
    rubrics=(Rubric("c", "is short"),),
    app={"app_name": "shop"},
)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "renamed"},
        {"tags": frozenset({"smoke"})},
        {"complexity": Complexity.COMPLEX},
        {"thresholds": {"contains": 0.1}},
        {"location": Location("a.yaml", 3)},
    ],
)
def test_what_does_not_measure_leaves_a_case_the_same(changes: dict[str, object]) -> None:
    assert of_case(replace(CASE, **changes)) == of_case(CASE)  # type: ignore[arg-type]


TURN, TOOL = CASE.turns[0], ToolCall("lookup", {"id": 1})
CHANGED_CASES = [
    replace(CASE, turns=()),
    replace(CASE, scenario=Scenario("hi", "Ask.")),
    replace(CASE, scenario=Scenario("hi", "Ask.", max_turns=3)),
    replace(CASE, turns=CASE.turns * 2),
    replace(CASE, turns=(replace(TURN, user="ho"),)),
    replace(CASE, turns=(replace(TURN, tools=None),)),
    replace(CASE, turns=(replace(TURN, tools=()),)),
    replace(CASE, turns=(replace(TURN, tools=(TOOL, TOOL)),)),
    replace(CASE, turns=(replace(TURN, tools=(replace(TOOL, args={}),)),)),
    replace(CASE, turns=(replace(TURN, tools=(replace(TOOL, args=None),)),)),
    replace(CASE, turns=(replace(TURN, tools=(replace(TOOL, name="", category="search"),)),)),
    replace(CASE, turns=(replace(TURN, response=None),)),
    replace(CASE, turns=(replace(TURN, response=()),)),
    replace(CASE, turns=(replace(TURN, response=(Part("Hello", thought=True),)),)),
    replace(CASE, turns=(replace(TURN, rubrics=()),)),
    replace(CASE, metadata={"m": 2}),
    replace(CASE, state={"s": 2}),
    replace(CASE, options={"contains": {"text": "y"}}),
    replace(CASE, rubrics=()),
    replace(CASE, app={"app_name": "other"}),
    replace(CASE, content={"expected": 1}),
]


def test_every_change_of_content_makes_another_case() -> None:
    assert len({of_case(case) for case in (CASE, *CHANGED_CASES)}) == len(CHANGED_CASES) + 1


def test_every_field_of_a_case_was_decided_upon() -> None:
    ignored = {"id", "tags", "complexity", "thresholds", "location", "cluster"}
    changed = {f.name for f in fields(Case) for case in CHANGED_CASES if getattr(case, f.name) != getattr(CASE, f.name)}
    assert {field.name for field in fields(Case)} == ignored | changed


def test_content_stands_for_what_varies_between_recordings() -> None:
    recorded = replace(CASE, content={"expected": ["lookup"]})
    assert of_case(replace(recorded, turns=(Turn("other words"),))) == of_case(recorded)
    assert of_case(replace(recorded, options={})) != of_case(recorded)


def test_a_criterion_is_metric_version_options_and_judge() -> None:
    base = of_criterion("m", 1, {"a": 1, "b": 2})
    assert of_criterion("m", 1, {"b": 2, "a": 1.0}) == base
    others = {
        of_criterion("n", 1, {"a": 1, "b": 2}),
        of_criterion("m", 2, {"a": 1, "b": 2}),
        of_criterion("m", 1, {"a": 1}),
        of_criterion("m", 1, {"a": 1, "b": 2}, judge="gpt"),
    }
    assert len(others | {base}) == 5


# --- agents ---------------------------------------------------------------------------------------


def agent(root: Path, **options: object) -> str:
    return of_agent(Git(root, environment=os.environ), **options)  # type: ignore[arg-type]


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "agent.py").write_text("print(1)\n")
    (root / "prompt.md").write_text("Be kind.\n")
    (root / ".gitignore").write_text("ignored/\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


def test_a_clone_has_the_same_agent(project: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(project), "copy")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{project}", "shallow")
    os.utime(tmp_path / "copy" / "prompt.md", (1, 1))
    assert agent(tmp_path / "copy") == agent(tmp_path / "shallow") == agent(project)


def test_committing_what_is_there_changes_nothing(project: Path) -> None:
    (project / "new.py").write_text("x = 1\n")
    (project / "prompt.md").unlink()
    before = agent(project)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "second")
    assert agent(project) == before


def test_every_change_of_the_source_is_seen(project: Path) -> None:
    seen = {agent(project)}

    def note() -> None:
        seen.add(agent(project))

    (project / "prompt.md").write_text("Be rude.\n")
    note()
    (project / "src" / "agent.py").rename(project / "src" / "other.py")
    note()
    (project / "new.py").write_text("")
    note()
    (project / "new.py").chmod(0o755)
    note()
    (project / "link").symlink_to("prompt.md")
    note()
    (project / "link").unlink()
    (project / "link").symlink_to("new.py")
    note()
    (project / "new.py").unlink()
    note()
    git(project, "init", "-q", "vendored")
    (project / "vendored" / "lib.py").write_text("a")
    note()
    (project / "vendored" / "lib.py").write_text("b")
    note()
    assert len(seen) == 10
    assert agent(project, settings={"model": "m"}) not in seen


def test_moving_bytes_between_name_and_content_is_seen(tmp_path: Path) -> None:
    for name, files in (("one", {"ab": "c"}), ("two", {"a": "bc"})):
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)
    assert agent(tmp_path / "one") != agent(tmp_path / "two")


def test_what_running_it_leaves_behind_is_not_its_source(project: Path) -> None:
    before = agent(project)
    for name in ("ignored/x", ".gate/records/r.jsonl", "src/__pycache__/a.pyc", "env/lib/x.py", "env/pyvenv.cfg"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x")
    assert agent(project) == before


RECORD = '{"gate_record":1}\n'
WRITTEN = [
    ("__pycache__/agent.cpython-311.pyc", {}),
    ("src/__pycache__/data.txt", {}),
    (".gate/prompt.md", {}),
    ("env/lib/x.py", {}),
    ("notes.jsonl", {}),
    ("out/report.md", {"exclude": ["out"]}),
    ("report.md", {"exclude": ["out", "report.md"]}),
]
"""Where the gate or Python writes, each with what the gate was told to write."""


@pytest.mark.parametrize(("name", "options"), WRITTEN)
def test_a_tracked_file_where_the_gate_or_python_writes_is_refused(
    project: Path, name: str, options: dict[str, object]
) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text(RECORD)
    (project / "env").mkdir(exist_ok=True)
    (project / "env/pyvenv.cfg").touch()
    agent(project, **options)
    git(project, "add", "-f", name)
    with pytest.raises(ConfigError, match=f"git tracks {name}, which is") as caught:
        agent(project, **options)
    assert int(caught.value.exit_code) == 2


def test_a_tracked_record_that_the_stated_sources_do_not_name_is_no_source(project: Path) -> None:
    (project / "recorded.jsonl").write_text(RECORD)
    git(project, "add", "-A")
    before = agent(project, sources=["src"])
    (project / "recorded.jsonl").write_text(RECORD * 2)
    assert agent(project, sources=["src"]) == before


def test_bytecode_beside_stated_sources_is_refused_too(project: Path) -> None:
    """Python runs it in place of the file that is named."""
    (project / "__pycache__").mkdir()
    (project / "__pycache__/agent.cpython-311.pyc").write_bytes(b"")
    git(project, "add", "-A")
    with pytest.raises(ConfigError, match="where Python writes"):
        agent(project, sources=["src"])


def test_the_suite_and_the_configuration_count_once_git_tracks_them(project: Path) -> None:
    for name in ("gate.yaml", "suite.yaml"):
        (project / name).write_text("# kind\n")
        own = {"cases": {"gate.yaml", "suite.yaml"}}
        before = agent(project, **own)
        (project / name).write_text("# rude\n")
        assert agent(project, **own) == before, "made by the job, it is no part of the agent"
        git(project, "add", name)
        seen = agent(project, **own)
        (project / name).write_text("# kind\n")
        assert agent(project, **own) != seen


def test_baselines_that_the_change_edits_count(project: Path) -> None:
    (project / "stored").mkdir()
    (project / "stored/a.jsonl").write_text(RECORD)
    git(project, "add", "-A")
    before = agent(project, stored="stored")
    (project / "stored/a.jsonl").write_text(RECORD * 2)
    assert agent(project, stored="stored") == before
    seen = {before, agent(project, stored="stored", changed={"stored/a.jsonl"})}
    (project / "stored/a.jsonl").write_text(RECORD * 3)
    seen.add(agent(project, stored="stored", changed={"stored/a.jsonl"}))
    assert len(seen) == 3


def test_the_commit_of_a_submodule_counts(project: Path) -> None:
    seen = set()
    for commit in ("1" * 40, "2" * 40):
        git(project, "update-index", "--add", "--cacheinfo", f"160000,{commit},module")
        (project / "module").mkdir(exist_ok=True)
        seen.add(agent(project))
    assert len(seen) == 2


def test_what_belongs_to_the_agent_beside_its_folder_counts(project: Path) -> None:
    """Its folders of modules, and what its links lead to, as far as it is in the same repository."""
    below = project / "below"
    below.mkdir()
    (below / "agent.py").write_text("1")
    (below / "prompt.md").symlink_to("../prompt.md")
    git(project, "add", "-A")
    for options in ({}, {"sources": ["*.md"]}):
        before = agent(below, entry=("../src",), **options)
        for name in ("prompt.md", "src/agent.py"):
            (project / name).write_text(f"another {len(options)}")
            now = agent(below, entry=("../src",), **options)
            assert now != before, name
            before = now


def test_what_links_of_the_sources_lead_to_counts(project: Path) -> None:
    """Also within the same folder, in turn, and for a program whose folder is a link."""
    for name in ("shared/prompt.md", "more/text.md", "old/agent.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("1")
    (project / "prompts").symlink_to("shared")
    (project / "shared/more").symlink_to("../more")
    (project / "now").symlink_to("old")
    (project / "loop").symlink_to("loop")
    git(project, "add", "-A")
    before = agent(project, sources=["prompts/"], entry=("now/agent.py",))
    for name in ("shared/prompt.md", "more/text.md", "old/agent.py"):
        (project / name).write_text("2")
        now = agent(project, sources=["prompts/"], entry=("now/agent.py",))
        assert now != before, name
        before = now
    (project / "prompt.md").write_text("of no source")
    assert agent(project, sources=["prompts/"], entry=("now/agent.py",)) == before


PLACES = st.sampled_from(["", "", "", "src/", "src/deep/", "src/__pycache__/", ".gate/", "env/", "env/lib/"])
NAMES = st.sampled_from(["a", "b.py", "c.jsonl", "d.jsonl", "pyvenv.cfg", "suite.yaml", "gate.yaml", "ü \n"])
CONTENTS = st.sampled_from(["", "x", RECORD, RECORD + "x", "# a comment\n"])
TREES = st.dictionaries(st.builds("{}{}".format, PLACES, NAMES), CONTENTS, min_size=1, max_size=6)


@pytest.mark.slow
def test_every_tracked_change_is_another_agent_or_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("tree") / "tree"
    root.mkdir()
    git(root, "init", "-q")

    def of(tree: dict[str, str]) -> str | None:
        """The fingerprint of these files, all tracked; None if they are refused."""
        for path in root.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, content in {**tree, "agent.py": "print(1)\n"}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
        git(root, "add", "-A", "-f")
        try:
            return agent(root, cases=frozenset({"gate.yaml", "suite.yaml"}))
        except ConfigError:
            return None

    @settings(max_examples=examples(120), deadline=None)
    @given(TREES, st.data())
    def changed(tree: dict[str, str], data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(tree)) | st.builds("{}{}".format, PLACES, NAMES))
        content = data.draw(CONTENTS | st.none())
        other = {key: held for key, held in tree.items() if key != name} | ({} if content is None else {name: content})
        before, after = of(tree), of(other)
        assert tree == other or before is None or after is None or before != after

    changed()


def test_without_git_the_folder_is_walked(tmp_path: Path) -> None:
    for name in ("a.py", "src/b.py", ".git-not/c", "env/pyvenv.cfg", "env/d.py", "node_modules/e.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    before = agent(tmp_path)
    (tmp_path / "env" / "d.py").write_text("changed")
    (tmp_path / "node_modules" / "e.js").write_text("changed")
    assert agent(tmp_path) == before
    (tmp_path / ".git-not" / "c").write_text("changed")
    assert agent(tmp_path) != before


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("src/**", {"src/a.py", "src/x/b.py"}),
        ("src", {"src/a.py", "src/x/b.py"}),
        ("./src/", {"src/a.py", "src/x/b.py"}),
        ("src/*.py", {"src/a.py"}),
        ("**/*.py", {"src/a.py", "src/x/b.py", "c.py"}),
        ("*.py", {"c.py"}),
        ("src/?.py", {"src/a.py"}),
        ("pro+mpt(1).md", {"pro+mpt(1).md"}),
        (".", {"src/a.py", "src/x/b.py", "c.py", "pro+mpt(1).md", "srcs/d.md"}),
    ],
)
def test_globs(tmp_path: Path, pattern: str, matches: set[str]) -> None:
    names = {"src/a.py", "src/x/b.py", "c.py", "pro+mpt(1).md", "srcs/d.md"}
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    chosen = agent(tmp_path, sources=[pattern])
    left = agent(tmp_path, exclude=[pattern]) if matches != names else ""
    for name in names:
        (tmp_path / name).write_text("changed")
        assert (agent(tmp_path, sources=[pattern]) != chosen) == (name in matches), name
        if left:
            assert (agent(tmp_path, exclude=[pattern]) != left) == (name not in matches), name
        (tmp_path / name).write_text(name)


def test_a_suite_beside_the_agent_does_not_exclude_it(project: Path) -> None:
    assert agent(project, exclude=[".", "./", ""]) == agent(project)


def test_sources_that_match_nothing_are_refused(project: Path) -> None:
    with pytest.raises(ConfigError, match="matches no file"):
        agent(project, sources=["src/**", "scr/**"])


def test_an_agent_of_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    with pytest.raises(ConfigError, match="no files"):
        agent(tmp_path, exclude=["**"])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (PythonOptions(python="bot.core:answer"), "bot/core.py"),
        (PythonOptions(python="bot.core.answer"), "bot/core/__init__.py"),
        (PythonOptions(python="core:answer", path=("lib",)), "lib/core.py"),
        (CommandOptions(command=("node", "./bot/main.js")), "bot/main.js"),
    ],
)
def test_what_the_gate_starts_is_the_agent_whatever_the_sources_name(
    project: Path, kind: AgentOptions, name: str
) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text("1")
    before = agent(project, sources=["prompt.md"], entry=kind.entry)
    (project / name).write_text("2")
    assert agent(project, sources=["prompt.md"], entry=kind.entry) != before


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_source_is_refused(project: Path) -> None:
    (project / "prompt.md").chmod(0)
    with pytest.raises(ConfigError, match="Permission denied"):
        agent(project)


@pytest.mark.parametrize(
    ("sources", "counts"),
    [
        ((), True),
        ((".",), False),
        (("**",), False),
        (("..",), True),
        (("*.py", "../*.md"), True),
        (("*.md", "."), False),
    ],
)
def test_what_lies_outside_of_a_subfolder_counts_unless_its_sources_say_otherwise(
    project: Path, sources: tuple[str, ...], counts: bool
) -> None:
    (project / "src/notes.md").write_text("")
    before = agent(project / "src", sources=sources)
    (project / "prompt.md").write_text("other")
    assert (agent(project / "src", sources=sources) != before) == counts


def test_another_agents_records_count_and_are_no_error(project: Path) -> None:
    """Only where this agent runs would the gate or Python write over them."""
    (project / "other").mkdir()
    (project / "other/stored.jsonl").write_text(RECORD)
    git(project, "add", "-A")
    seen = {agent(project / "src"), agent(project / "src", sources=["."])}
    (project / "other/stored.jsonl").write_text(RECORD * 2)
    seen |= {agent(project / "src"), agent(project / "src", sources=["."])}
    assert len(seen) == 3


@pytest.mark.parametrize("name", ["lib/sitecustomize.py", "usercustomize.py", "lib/own.pth"])
def test_what_python_runs_unasked_counts_whatever_the_sources_name(project: Path, name: str) -> None:
    before = agent(project, sources=["src"])
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text("1")
    assert agent(project, sources=["src"]) != before
