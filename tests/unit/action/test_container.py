"""localhost, the agent's own Python and the workspace's owner."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gate.action.container import (
    BOOT_SECONDS,
    answers,
    end_all_others,
    gateway_of,
    give_back,
    prepare,
    reachable,
    runner_address,
)
from gate.errors import ConfigError
from tests.patience import eventually

ROUTES = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t000012AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
eth0\t00000000\t010012AC\t0003\t0\t0\t0\t00000000\t0\t0\t0
"""


def test_the_gateway_is_the_default_route() -> None:
    assert gateway_of(ROUTES) == "172.18.0.1"


@pytest.mark.parametrize("routes", ["", "Iface\n", ROUTES.replace("010012AC", "00000000"), "x\ny"])
def test_without_a_default_route_there_is_no_gateway(routes: str) -> None:
    assert gateway_of(routes) is None


def test_outside_a_container_the_default_route_leads_to_a_stranger(tmp_path: Path) -> None:
    assert runner_address(tmp_path) is None


def only(*known: tuple[str, int]):  # type: ignore[no-untyped-def]
    return lambda host, port: (host, port) in known


@pytest.mark.parametrize("url", ["http://agent.example:8000/x", "https://10.0.0.1/"])
def test_other_addresses_are_left_alone(url: str) -> None:
    assert reachable(url, "172.18.0.1", answers=only()) == url


def test_an_agent_inside_the_container_is_reached_as_it_is() -> None:
    inside = only(("localhost", 8000), ("172.18.0.1", 8000))
    assert reachable("http://localhost:8000/chat?a=b", "172.18.0.1", answers=inside) == "http://localhost:8000/chat?a=b"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_an_agent_on_the_runner_is_reached_through_the_gateway(host: str) -> None:
    on_runner = only(("172.18.0.1", 8000))
    assert (
        reachable(f"http://{host}:8000/chat?a=b", "172.18.0.1", answers=on_runner) == "http://172.18.0.1:8000/chat?a=b"
    )


def test_a_url_without_port_has_its_schemes() -> None:
    assert reachable("http://localhost/", "10.1.1.1", answers=only(("10.1.1.1", 80))) == "http://10.1.1.1:80/"


class Time:
    """A clock that pausing alone puts forward, and addresses that listen from some second on."""

    def __init__(self, **since: float) -> None:
        self.now, self.since = 0.0, since

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        assert 0 < seconds < 5
        self.now += seconds

    def answers(self, host: str, port: int) -> bool:
        assert port == 8000
        return self.now >= self.since.get(host, float("inf"))


def wait_for(time: Time, gateway: str | None) -> str:
    url = "http://localhost:8000/chat"
    return reachable(url, gateway, answers=time.answers, clock=time.clock, pause=time.pause)


@pytest.mark.parametrize(("gateway", "said"), [("172.18.0.1", "0.0.0.0:8000"), (None, "an earlier step")])
def test_an_agent_that_is_not_found_is_said_with_what_to_change(gateway: str | None, said: str) -> None:
    time = Time()
    with pytest.raises(ConfigError, match=r"nothing answers at") as caught:
        wait_for(time, gateway)
    assert BOOT_SECONDS <= time.now < BOOT_SECONDS + 5
    assert said in caught.value.hint
    assert "setup" in caught.value.hint


@pytest.mark.parametrize(("address", "found"), [("localhost", "localhost"), ("runner", "runner")])
def test_a_server_may_take_its_time_until_it_listens(address: str, found: str) -> None:
    time = Time(**{address: 12.0})
    assert wait_for(time, "runner") == f"http://{found}:8000/chat"
    assert 12 <= time.now < 15


def test_a_port_answers_while_someone_listens() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        assert not answers(*server.getsockname())
        server.listen()
        assert answers(*server.getsockname())


# --- setup ----------------------------------------------------------------------------------------

uv = pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not on the path")
ENVIRONMENT = {**os.environ, "UV_OFFLINE": "1"}


@pytest.fixture
def uv_without_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A uv that makes the environment with the standard library: the real one downloads pip."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "uv"
    script.write_text(f'#!/bin/sh\nfor last; do :; done\nexec "{sys.executable}" -m venv --without-pip "$last"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_setup_runs_in_an_environment_of_its_own(tmp_path: Path, uv_without_seed: Path) -> None:
    said: list[str] = []
    cache = tmp_path / "work" / "cache"
    command = "echo hello; command -v python; echo $VIRTUAL_ENV; echo $UV_CACHE_DIR"
    environment = {"PATH": os.environ["PATH"], "KEEP": "1"}
    made = prepare(command, root=tmp_path, cache=cache, environment=environment, say=said.append)
    assert said == ["hello", str(cache / "venv/bin/python"), str(cache / "venv"), str(cache / "uv")]
    assert made["VIRTUAL_ENV"] == str(cache / "venv")
    assert made["PATH"].startswith(str(cache / "venv/bin"))
    assert made["KEEP"] == "1"
    assert (cache / ".gitignore").read_text() == "*\n"
    assert "UV_CACHE_DIR" not in made, "the agent has no use for it"


def test_setup_stops_at_the_first_command_that_fails(tmp_path: Path, uv_without_seed: Path) -> None:
    said: list[str] = []
    with pytest.raises(ConfigError, match="exit code 3"):
        prepare(
            "echo one\n(exit 3)\necho two", root=tmp_path, cache=tmp_path / "c", environment=os.environ, say=said.append
        )
    assert said == ["one"]


SERVER = """
import os, signal, socket, time
signal.alarm(600)  # it ends by itself, and so would a test that waits for it
server = socket.socket()
server.bind(("127.0.0.1", 0))
with open("port.new", "w") as file: file.write(str(server.getsockname()[1]))
os.rename("port.new", "port")
print("x" * 300_000, flush=True)  # more than a pipe holds
time.sleep(3)
server.listen()
while True:
    server.accept()[0].close()
    print("accepted", flush=True)
"""


@pytest.mark.slow
def test_a_server_that_setup_starts_in_the_background_outlives_it(tmp_path: Path, uv_without_seed: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    said: list[str] = []
    command = f"{sys.executable} server.py &\necho $! > pid\necho started"
    prepare(command, root=tmp_path, cache=tmp_path / "c", environment=os.environ, say=said.append)
    pid = int((tmp_path / "pid").read_text())
    try:
        assert "started" in "\n".join(said)
        assert eventually((tmp_path / "port").exists)
        port = int((tmp_path / "port").read_text())
        url = f"http://127.0.0.1:{port}/"
        assert reachable(url, None) == url
        before = len(said)
        for _ in range(3):  # each makes it print once more
            assert eventually(lambda: answers("127.0.0.1", port))
        assert len(said) == before, "after setup nothing of it is said any more"
    finally:
        os.kill(pid, signal.SIGKILL)  # fails where the server was not there any more


def test_all_that_setup_printed_is_said_whatever_it_left_running(tmp_path: Path, uv_without_seed: Path) -> None:
    said: list[str] = []
    command = "sleep 60 & echo $! > pid\nfor i in $(seq 5000); do echo line $i; done; printf 'ende ü'"
    prepare(command, root=tmp_path, cache=tmp_path / "c", environment=os.environ, say=said.append)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert said == [*(f"line {n}" for n in range(1, 5001)), "ende ü"]


def test_output_without_end_does_not_keep_setup(tmp_path: Path, uv_without_seed: Path) -> None:
    said: list[str] = []
    prepare("yes & echo $! > pid", root=tmp_path, cache=tmp_path / "c", environment=os.environ, say=said.append)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert set(said) <= {"y"}


def test_a_missing_uv_is_a_configuration_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="uv cannot be run"):
        prepare("true", root=tmp_path, cache=tmp_path / "c", environment={}, say=print)


# --- ownership ------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_in_the_workspace_go_to_its_owner(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("root's")
    workspace = tmp_path / "workspace"
    (workspace / "a" / "b").mkdir(parents=True)
    (workspace / "a" / "b" / "record.jsonl").write_text("x")
    (workspace / "theirs").write_text("x")
    (workspace / "link").symlink_to(outside)
    os.chown(workspace, 1001, 1002)
    os.chown(workspace / "theirs", 55, 66)
    assert give_back(workspace) == 4
    assert {(p.lstat().st_uid, p.lstat().st_gid) for p in workspace.rglob("*")} == {(1001, 1002), (55, 66)}
    assert outside.stat().st_uid == 0, "a link is given away, not what it points at"
    assert give_back(workspace) == 0


def test_a_workspace_of_root_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    assert give_back(tmp_path) == 0


# --- the end --------------------------------------------------------------------------------------

LEAVING = """
import os, subprocess, sys, time
from gate.action.container import end_all_others
stays = "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.setsid()\\n"
stays += "while True: open(sys.argv[1], 'a').write('x'); os.fork() and os._exit(0); time.sleep(0.01)"
subprocess.Popen([sys.executable, "-c", stays, sys.argv[1]])
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
end_all_others()
size = os.path.getsize(sys.argv[1])
time.sleep(0.3)
print(os.getpid(), os.path.getsize(sys.argv[1]) - size)
"""


def test_nothing_of_the_container_outlives_the_measurement(tmp_path: Path) -> None:
    """A process that ignores signals and is another one every moment, where the gate is the first of a container."""
    alone = ["unshare", "--pid", "--fork", "--kill-child"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespace of processes can be made here")
    command = [*alone, sys.executable, "-c", LEAVING, str(tmp_path / "written")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["1", "0"], done.stderr


def test_outside_a_container_nothing_else_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _number: sent.append(pid))
    end_all_others()
    assert sent == []
