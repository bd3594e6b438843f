"""The image itself: built, and run as the runner runs it, from event to comment."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("openapi_core", reason="the contract is checked with openapi-core")

from tests.integration.container.image import RUNNER, Engine, InContainer, Unavailable, engine
from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.job import CONFIG, git, suite
from tests.integration.github.scenarios import World, report

pytestmark = pytest.mark.container


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    kept = os.environ.get("GATE_CONTAINER_CACHE")
    try:
        found = engine(Path(kept) if kept else tmp_path_factory.mktemp("image"))
        found.build()
    except Unavailable as error:
        pytest.skip(str(error))
    yield found
    found.close()


@pytest.fixture
def world(tmp_path: Path, image: Engine) -> Iterator[World]:
    with FakeGitHub() as fake:
        made = World(tmp_path, fake, InContainer(image, tmp_path))
        yield made
    assert fake.violations == []


@pytest.fixture
def recorded(world: World) -> World:
    done = world.push("good")
    assert done.code == 0, done.log
    return world


def test_a_baseline_is_recorded_and_a_sound_change_passes(recorded: World) -> None:
    assert git(recorded.repository.remote, "rev-list", "--count", "gate-baselines") == "1"
    done = recorded.pull_request("good")
    assert (done.code, done.outputs["verdict"]) == (0, "pass"), done.log
    assert done.outputs["baseline_distance"] == "0"
    assert len(recorded.comments()) == 1
    assert "support" in done.summary
    assert (recorded.last.workspace / done.outputs["junit_path"]).exists()
    left = [path for path in recorded.last.workspace.rglob("*") if path.lstat().st_uid != RUNNER]
    assert left == [], "what the container leaves belongs to the workspace's owner"


def test_a_regression_fails_with_annotations(recorded: World) -> None:
    done = recorded.pull_request("bad")
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    assert any(properties.get("file") == "suite.yaml" for _, properties, _ in done.annotations())
    assert recorded.comments()[0].splitlines()[1].startswith("### ❌")
    assert not [command for command in done.annotations() if "agent speaks" in command[2]]


def test_a_first_change_is_compared_with_the_agent_of_its_base_commit(world: World) -> None:
    base = world.repository.commit("good")
    done = world.pull_request("awful")
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    assert done.outputs["baseline_sha"] == base


def test_inconclusive(world: World) -> None:
    world.repository.files["suite.yaml"] = suite(4)
    world.push("good")
    done = world.pull_request("slip", inputs={"trials": "1"})
    assert (done.code, done.outputs["verdict"]) == (0, "inconclusive"), done.log


def test_a_bad_configuration(world: World) -> None:
    world.repository.commit("good")
    done = world.pull_request("good", files={"gate__yaml": CONFIG + "sweet: true\n"})
    assert done.code == 2, done.log
    assert "sweet" in done.annotations("error")[0][2]
    assert "Traceback" not in done.log


def test_an_agent_that_is_down(world: World) -> None:
    world.repository.commit("good")
    done = world.pull_request("down")
    assert (done.code, done.outputs["verdict"]) == (3, "error"), done.log


def test_a_fork_and_its_report(recorded: World) -> None:
    measured = recorded.pull_request("bad", fork=True)
    assert measured.code == 1, measured.log
    assert recorded.comments() == []
    reported = report(recorded)
    assert (reported.code, reported.outputs["verdict"]) == (1, "regressed"), reported.log
    assert len(recorded.comments()) == 1


def test_nothing_in_the_workspace_stands_in_for_a_module_of_ours(world: World) -> None:
    shadows = {
        f"{name}__py": "raise SystemExit('imported from the workspace')\n" for name in ("click", "httpx", "gate")
    }
    world.repository.commit("good", **shadows)
    done = world.pull_request("good", files=shadows)
    assert done.code == 0, done.log


def test_setup_installs_the_agent_into_an_environment_of_its_own(world: World) -> None:
    """The agent imports what only its own environment has, and nothing of ours."""
    agent = world.repository.files["agent.py"]
    world.repository.files["agent.py"] = "import dependency\n" + agent.replace(
        "import sys\n", "import sys\nassert 'pydantic' not in sys.modules\n"
    )
    setup = "echo > $(python -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')/dependency.py"
    world.repository.commit("good")
    authorities = os.environ.get("GATE_TESTS_SSL_CERT_FILE")
    certificates = {} if authorities is None else {"SSL_CERT_FILE": authorities}
    done = world.pull_request("good", inputs={"setup": setup}, environment=certificates)
    assert done.code == 0, done.log
    assert (recorded_venv(world) / "bin" / "python").is_symlink()


def test_its_packages_are_whole_so_that_setup_can_install_more(image: Engine) -> None:
    done = image.start(["sh", "-c", "apt-get check -qq && dpkg --verify && which ssh git uv"], {}, {})
    assert done.returncode == 0, done.stdout + done.stderr


REMOTES = r"""
set -e
cd "$1"
openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost 2>/dev/null
python3 -u -c '
import http.server, ssl
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Quiet)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert", "key")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, file=open("port.new", "w"), flush=True)
__import__("os").rename("port.new", "port")
server.serve_forever()
' >/dev/null 2>&1 &
server=$!
trap 'kill $server' EXIT
while [ ! -e port ]; do kill -0 $server; sleep 0.1; done
# What stands for ssh: its words are the host and the command to run there.
printf '#!/bin/sh\nshift $(($# - 1))\nexec sh -c "$1"\n' > there && chmod +x there
git init -q --bare -b main remote.git
git init -q -b main work && cd work
git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m one
git push -q "file://$1/remote.git" HEAD:refs/heads/file
GIT_SSH="$1/there" git push -q "ssh://localhost$1/remote.git" HEAD:refs/heads/ssh
GIT_SSH="$1/there" git fetch -q "ssh://localhost$1/remote.git" file
git -C ../remote.git update-server-info
GIT_SSL_CAINFO="$1/cert" no_proxy=localhost git fetch -q "https://localhost:$(cat ../port)/remote.git" ssh
git worktree add -q ../tree FETCH_HEAD
test "$(git rev-parse HEAD)" = "$(git rev-parse FETCH_HEAD)"
"""


def test_git_reaches_remotes_of_all_kinds(image: Engine, tmp_path: Path) -> None:
    done = image.start(["sh", "-c", REMOTES, "sh", str(tmp_path)], {}, {str(tmp_path): str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr


def recorded_venv(world: World) -> Path:
    return world.last.workspace / ".gate" / "setup" / "venv"


class Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.rfile.read(length)
        calls = [{"name": name, "arguments": {}} for name in ("lookup_order", "refund_order")]
        content = json.dumps({"output": "ok", "tool_calls": calls}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(
    ("listens", "found"),
    [("0.0.0.0", True), ("127.0.0.1", False), (None, False)],
    ids=["everywhere", "localhost alone", "not at all"],
)
def test_an_agent_on_the_runner_is_reached_or_the_error_says_what_to_change(
    tmp_path: Path, image: Engine, listens: str | None, found: bool
) -> None:
    """The container has a network of its own, in which localhost is another machine than the runner's."""
    with image.network() as runner, FakeGitHub(host=runner) as fake, serving(listens or "127.0.0.1") as server:
        world = World(tmp_path, fake, InContainer(image, tmp_path))
        port = server.server_port
        if listens is None:
            server.shutdown()
            server.server_close()
        config = CONFIG.replace('python: "agent:answer"', f'http: "http://localhost:{port}/chat"')
        world.repository.files |= {"gate.yaml": config, "suite.yaml": names_only()}
        world.repository.commit("good")
        done = world.pull_request("good")
        assert fake.violations == []
    if found:
        assert done.code == 0, done.log
        assert len(world.comments()) == 1
    else:
        assert done.code == 2, done.log
        [(_, _, message)] = done.annotations("error")
        assert f"0.0.0.0:{port}" in message and runner in message


@contextmanager
def serving(host: str) -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer((host, 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def names_only() -> str:
    """The suite without arguments: the server above answers all alike."""
    calls = "[{name: lookup_order, args: {}}, {name: refund_order, args: {}}]"
    return (
        "cases:\n"
        + "\n".join(f"  - {{id: refund-{n}, input: refund order {n}, tools: {calls}}}" for n in range(24))
        + "\n"
    )
