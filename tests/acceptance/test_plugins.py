"""The package of the page on plugins, installed by pip, adds one of each kind to a real run, publishing included."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import jsonschema
import pytest
import yaml

from tests.acceptance.conftest import REPOSITORY, Project, first_of

PAGE = REPOSITORY / "docs/how-to/extend.md"
BLOCK = re.compile(r"^```\w+\n# (?P<name>[\w./]+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
FILES = {block["name"]: block["text"] for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}
ANSWER = {"role": "assistant", "content": "You are welcome."}
QUESTIONS = "id,question\nfirst,How are you?\nsecond,What time is it?\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package and what pip writes beside it."""
    target = tmp_path_factory.mktemp("site")
    unpack(target)
    project = tomllib.loads((target / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = target / "acme_gate-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (info / "entry_points.txt").write_text(entry_points(project))
    return target


def entry_points(project: dict[str, Any]) -> str:
    groups = [
        (group, [f"{name} = {place}" for name, place in of.items()]) for group, of in project["entry-points"].items()
    ]
    return "".join(f"[{group}]\n" + "".join(f"{line}\n" for line in lines) + "\n" for group, lines in groups)


def unpack(folder: Path) -> None:
    for name, text in FILES.items():
        if name != "gate.yaml":
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    (folder / "acme_gate/__init__.py").touch()


@pytest.mark.slow
def test_pip_installs_the_package_of_the_page(tmp_path: Path, site: Path) -> None:
    """Offline, by the setuptools that is here."""
    source, target = tmp_path / "acme", tmp_path / "site"
    source.mkdir()
    unpack(source)
    offline = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    install = [sys.executable, "-m", "pip", "install", *offline, "--target", str(target), str(source)]
    subprocess.run(install, check=True, capture_output=True, text=True)
    [written] = target.glob("*.dist-info/entry_points.txt")
    [own] = site.glob("*.dist-info/entry_points.txt")
    assert sorted(written.read_text().split()) == sorted(own.read_text().split())


class Channel(ThreadingHTTPServer):
    """What was posted to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posted: list[tuple[str, Any]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Channel

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posted.append((self.headers["Authorization"], body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def channel() -> Iterator[Channel]:
    with Channel() as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def configured(project: Project, channel: Channel, **changes: Any) -> None:
    content = yaml.safe_load(FILES["gate.yaml"])
    content["publish"]["chat"]["url"] = channel.url
    project.write("gate.yaml", yaml.safe_dump({**content, **changes}))
    project.write("questions.csv", QUESTIONS)


@pytest.mark.slow
def test_a_package_adds_one_of_each_kind(project: Project, site: Path, channel: Channel) -> None:
    configured(project, channel)
    seen = {"PYTHONPATH": str(site), "CHAT_TOKEN": "secret-of-the-channel"}
    code, found = project.result("run", "--trials", "5", "--record", "first.jsonl", **seen)
    assert code == 0
    (suite,) = found["suites"]
    assert [case["id"] for case in suite["cases"]] == ["first", "second"]
    assert [one["criterion"]["name"] for one in suite["criteria"]] == ["pass rate", "politeness"]
    assert (project.root / "overview.txt").read_text() == "questions.csv: pass\n"
    ((token, message),) = channel.posted
    assert token == "Bearer secret-of-the-channel"
    assert message["text"].startswith("### ✅ ")

    saved = project.gate("baseline", "save", "first.jsonl", **seen)
    assert saved.code == 0, saved.err
    with sqlite3.connect(project.root / "baselines.db") as database:
        kept = dict(database.execute("SELECT key, data FROM kept"))
    assert sorted(key.partition("/")[2] for key in kept) == ["ledger.ndjson", "uncommitted.jsonl"]
    (record,) = (data for key, data in kept.items() if key.endswith("uncommitted.jsonl"))
    assert b'"questions.csv"' in record.splitlines()[0]

    configured(project, channel, agent={"echo": "No."})
    second = project.gate("run", "-v", "--trials", "5", **seen)
    assert second.code == 1, second.out
    assert "0 of 1 answers are polite" in second.out
    assert (project.root / "overview.txt").read_text() == "questions.csv: regressed\n"
    assert [message["text"].split("\n")[0][:5] for _, message in channel.posted[1:]] == ["### ❌"]


@pytest.mark.slow
def test_a_host_that_cannot_be_reached_changes_no_verdict(project: Project, site: Path, channel: Channel) -> None:
    configured(project, channel)
    channel.status = 500
    ran = project.gate("run", "-q", PYTHONPATH=str(site))
    assert (ran.code, len(channel.posted)) == (0, 1)
    assert f"gate: {channel.url}: the channel cannot be reached: HTTP Error 500" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "said"),
    first_of(
        [
            ({"criteria": {"politness": 1.0}}, "unknown metric 'politness' (did you mean 'politeness', of acme-gate?)"),
            ({"criteria": {"politeness": {"leest": 1}}}, "unknown option 'leest' (did you mean 'least'?)"),
            ({"agent": {"ecko": "x"}}, "no agent kind is set (did you mean 'echo', of acme-gate?)"),
            ({"agent": {"echo": "x", "timeuot": 1}}, "unknown key 'timeuot' (did you mean 'timeout'?)"),
            ({"format": "question"}, "unknown suite format 'question' (did you mean 'questions', of acme-gate?)"),
            ({"baseline": {"store": "sqlight"}}, "unknown store 'sqlight' (did you mean 'sqlite', of acme-gate?)"),
            ({"baseline": {"store": "sqlite"}}, "missing key 'baseline.database'"),
            ({"baseline": {"store": "sqlite", "databse": "x"}}, "unknown key 'databse' (did you mean 'database'?)"),
            ({"reports": {"overveiw": "x.txt"}}, "unknown report 'overveiw' (did you mean 'overview', of acme-gate?)"),
            ({"reports": {"overview": "../x.txt"}}, "'../x.txt' is not a file below the configuration's folder"),
            ({"publish": "chatt"}, "unknown host 'chatt' (did you mean 'chat', of acme-gate?)"),
            ({"publish": {"chat": {"url": "x", "uri": "y"}}}, "unknown key 'uri' (did you mean 'url'?)"),
        ],
        3,
    ),
)
def test_what_is_wrong_is_one_line(
    project: Project, site: Path, channel: Channel, changes: dict[str, Any], said: str
) -> None:
    configured(project, channel, **changes)
    ran = project.gate("run", PYTHONPATH=str(site))
    assert ran.code == 2, ran.out + ran.err
    assert said in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert channel.posted == []


@pytest.mark.slow
def test_the_schema_knows_installed_packages(project: Project, site: Path) -> None:
    content = yaml.safe_load(FILES["gate.yaml"])
    schema = json.loads(project.gate("schema", PYTHONPATH=str(site)).out)
    jsonschema.validate(content, schema)
    wrong = {**content, "baseline": {"store": "sqlite", "databse": "x"}}
    with pytest.raises(jsonschema.ValidationError, match="databse"):
        jsonschema.validate(wrong, schema)


def test_without_the_package_the_names_are_unknown(project: Project, channel: Channel) -> None:
    configured(project, channel)
    ran = project.gate("run")
    assert ran.code == 2
    assert "no agent kind is set (known: " in ran.err


@pytest.mark.slow
def test_an_option_of_a_plugin_is_tightened_by_a_change_and_not_loosened(
    project: Project, site: Path, channel: Channel
) -> None:
    seen = {"PYTHONPATH": str(site)}
    agent = {"echo": "You are welcome!"}
    configured(project, channel, agent=agent, criteria={"politeness": {"threshold": 1.0, "least": 2}})
    project.commit()
    configured(project, channel, agent=agent, criteria={"politeness": {"threshold": 1.0, "least": 1}})
    project.commit("loosen")
    ran = project.gate("run", "--rules-from", "HEAD^", **seen)
    assert ran.code == 1, ran.out
    assert "politeness.least: 2 → 1 takes effect once it is merged" in ran.out
    configured(project, channel, agent=agent, criteria={"politeness": {"threshold": 1.0, "least": 3}})
    project.commit("tighten")
    ran = project.gate("run", "--rules-from", "HEAD^", **seen)
    assert "politeness.least: 1 → 3, stricter" in ran.out
    configured(project, channel, agent=agent, baseline={"store": "file"}, publish={}, reports={})
    project.commit("store")
    ran = project.gate("run", "--rules-from", "HEAD^", **seen)
    assert 'baseline.store: "sqlite" → "file" takes effect once it is merged' in ran.out
    assert 'publish: {"chat": ' in ran.out


@pytest.mark.slow
def test_a_change_that_brings_the_first_configuration_publishes_nowhere(
    project: Project, site: Path, channel: Channel
) -> None:
    project.write("README.md", "empty")
    project.commit()
    configured(project, channel)
    project.commit("begin")
    ran = project.gate("run", "-q", "--rules-from", "HEAD^", PYTHONPATH=str(site))
    assert ran.code == 0, ran.err
    assert "publish takes effect once it is merged" in ran.err
    assert channel.posted == []


BROKEN = """
from gate import BlobStore, Metric, NoOptions

class Raises(Metric[NoOptions]):
    "Raises."
    default_threshold = 1.0
    def score(self, case, performance):
        raise RuntimeError("nobody home")

class Gone(BlobStore):
    open = classmethod(lambda cls, settings: cls())
    def get(self, key): raise OSError("bucket gone")
    def put(self, key, data, before): raise OSError("bucket gone")
    def keys(self, prefix): raise OSError("bucket gone")

class Leaves(Raises):
    def score(self, case, performance):
        raise SystemExit(0)

def report(result): return result.nothing
def leave(result): raise SystemExit(0)
"""
ENTRIES = """
[agent_gate.metrics]
raises = broken_plugin:Raises
leaves = broken_plugin:Leaves
[agent_gate.stores]
gone = broken_plugin:Gone
[agent_gate.reports]
torn = broken_plugin:report
leave = broken_plugin:leave
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"criteria": {"raises": 1.0}}, 3, "the metric raised RuntimeError"),
        ({"baseline": {"store": "gone"}}, 4, "Gone: the store raised OSError: bucket gone"),
        ({"reports": {"torn": "torn.txt"}}, 3, "the report 'torn' raised AttributeError: 'Result' object has no"),
        ({"criteria": {"leaves": 1.0}}, 3, "the metric raised SystemExit: 0"),
        ({"reports": {"leave": "leave.txt"}}, 3, "the report 'leave' raised SystemExit: 0"),
    ],
)
def test_what_a_plugin_raises_is_told_and_has_an_exit_code(
    project: Project, changes: dict[str, Any], code: int, said: str
) -> None:
    info = project.root / "site/broken_plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    (info.parent / "broken_plugin.py").write_text(BROKEN)
    project.write("cases.yaml", "cases: [{id: a, input: hello}]")
    content = {
        "suite": "cases.yaml",
        "agent": {"command": ["sh", "-c", "cat >/dev/null; echo hello"]},
        "criteria": {"contains": {"values": ["hello"]}},
    }
    project.write("gate.yaml", yaml.safe_dump({**content, **changes}))
    ran = project.gate("run", PYTHONPATH=str(info.parent))
    assert ran.code == code, ran.out + ran.err
    assert said in ran.out + ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "said"),
    first_of(
        [
            ("chat", "--publish: publish.chat: missing key 'url'"),
            ("gitlub", "unknown host 'gitlub' (did you mean 'gitlab'?)"),
        ]
    ),
)
def test_a_host_of_the_command_line_is_checked_before_the_run(
    project: Project, site: Path, channel: Channel, host: str, said: str
) -> None:
    configured(project, channel, publish={})
    ran = project.gate("run", "--publish", host, PYTHONPATH=str(site))
    assert ran.code == 2
    assert said in ran.err
    assert not (project.root / ".gate").exists()


def test_a_plugins_metric_is_scored_in_worker_processes(project: Project, site: Path) -> None:
    rows = [{"id": f"c{n}", "messages": [{"role": "user", "content": "hi"}, ANSWER]} for n in range(30)]
    project.write("rows.json", rows)
    config = "suite: rows.json\nagent: {replay: true}\ncriteria: {politeness: 1.0}\nexecutor: {processes: 2}\n"
    project.write("gate.yaml", config)
    code, found = project.result("run", PYTHONPATH=str(site))
    assert (code, len(found["suites"][0]["cases"])) == (0, 30)
