"""Recorded trials scored on a real Ray cluster on loopback: its head, its node and its worker processes.

`make cluster` installs Ray into an environment of its own and names its interpreter in GATE_RAY_PYTHON.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.scoring.recordings import (
    UNHURRIED,
    Folder,
    alive,
    assert_same,
    children,
    kill,
    scored,
    until,
    workers,
    write_suite,
)
from tests.patience import CEILING

PYTHON = os.environ.get("GATE_RAY_PYTHON", "")
BRIDGE = "gate.cluster.bridge"
SECRET = "correct horse battery staple"

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not PYTHON, reason="GATE_RAY_PYTHON names no interpreter with Ray"),
]


@dataclass(frozen=True)
class RayCluster:
    """A head on this machine with two processors."""

    port: int
    temporary: Path

    @property
    def token(self) -> dict[str, str]:
        """What Ray asks of those who come."""
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": f"{self.port:064d}"}

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    temporary = Path(f"/tmp/ray-{os.getpid()}")  # short: Ray puts sockets there
    started = RayCluster(port, temporary)
    command = [*_ray(), "start", "--head", "--block", f"--port={port}", "--num-cpus=2"]
    command += ["--include-dashboard=false", "--disable-usage-stats", "--object-store-memory=100000000"]
    head = subprocess.Popen(
        [*command, f"--temp-dir={temporary}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **started.token},
        start_new_session=True,
    )
    try:
        until(lambda: _listens(port))
        yield started
    finally:
        head.terminate()
        head.wait(timeout=60)


def _ray() -> list[str]:
    return [PYTHON, "-c", "from ray.scripts.scripts import main; main()"]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _ray_workers() -> list[int]:
    """The processes in which the cluster runs what it is given, by the title that Ray gives them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                title = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::score"):
                found.append(int(entry.name))
    return found


@pytest.fixture
def folder(tmp_path: Path, cluster: RayCluster) -> Folder:
    write_suite(tmp_path)
    return Folder(tmp_path, PYTHON, cluster.token)


@pytest.fixture
def unhurried(tmp_path: Path, cluster: RayCluster) -> Folder:
    write_suite(tmp_path, criteria=UNHURRIED)
    whole = Folder(tmp_path, PYTHON, cluster.token)
    assert whole.record("whole").code == 0
    whole.configure(executor={"ray": cluster.address})
    return whole


def test_the_record_and_the_verdict_are_those_of_one_process(folder: Folder, cluster: RayCluster) -> None:
    assert folder.record("one").code == 0
    folder.configure(executor={"ray": cluster.address})
    ran = folder.record("ray", THE_PASSWORD=SECRET)
    assert ran.code == 0, ran.err
    assert_same(folder, "one", "ray")
    assert len(folder.trials("ray")) == 300


def test_checks_of_ones_own_are_scored_on_the_cluster(unhurried: Folder) -> None:
    log = unhurried.root / "scored-by"
    log.unlink()
    ran = unhurried.record("ray")
    assert ran.code == 0, ran.err
    assert_same(unhurried, "whole", "ray")
    assert len(set(log.read_text().split())) >= 2


def test_auto_finds_the_cluster_of_this_machine(folder: Folder, cluster: RayCluster) -> None:
    assert folder.record("one").code == 0
    folder.configure(executor={"ray": "auto"})
    ran = folder.record("ray", RAY_ADDRESS=cluster.address)
    assert ran.code == 0, ran.err
    assert_same(folder, "one", "ray")


def test_a_cluster_of_its_own_ends_with_the_run(folder: Folder) -> None:
    assert folder.record("one").code == 0
    folder.configure(executor={"ray": "local"})
    before = _everything_of_ray()
    ran = folder.record("ray")
    assert ran.code == 0, ran.err
    assert_same(folder, "one", "ray")
    until(lambda: _everything_of_ray() <= before)


def test_a_worker_of_the_cluster_is_killed(unhurried: Folder) -> None:
    run = unhurried.start("--quiet", "--record", "killed.jsonl", "--json", "killed.json")
    until(lambda: scored(unhurried, "killed") > 20 and _ray_workers(), run)
    for pid in _ray_workers():
        kill(pid)
    _, err = run.communicate()
    assert run.returncode == 0, err
    assert_same(unhurried, "whole", "killed")


def test_a_check_that_kills_every_worker_is_an_error(folder: Folder, cluster: RayCluster) -> None:
    folder.configure(criteria={"checks:fatal": 0.5}, executor={"ray": cluster.address})
    (folder.root / "checks.py").write_text("import os\n\ndef fatal(actual, expected):\n    os.kill(os.getppid(), 9)\n")
    ran = folder.record("dead")
    assert ran.code == 3
    assert "the cluster could not score a batch: WorkerCrashedError" in ran.err
    assert "--resume" in ran.err


def test_stopped_by_ctrl_c(unhurried: Folder) -> None:
    run = unhurried.start("--quiet", "--record", "stopped.jsonl")
    until(lambda: scored(unhurried, "stopped") > 20, run)
    left = children(run.pid, BRIDGE)
    assert left
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=CEILING)
    assert run.returncode == 130
    assert "Traceback" not in err
    assert not any(map(alive, left))
    assert 20 < len(unhurried.trials("stopped")) < 300
    assert unhurried.record("stopped").code == 0
    assert_same(unhurried, "whole", "stopped")


def test_nobody_outlives_a_gate_that_is_killed(unhurried: Folder) -> None:
    unhurried.configure(executor={"ray": "local"})
    before = _everything_of_ray()
    run = unhurried.start("--quiet", "--record", "shot.jsonl")
    until(lambda: scored(unhurried, "shot") > 20, run)
    assert _everything_of_ray() > before
    kill(run.pid)
    run.communicate()
    until(lambda: not workers(BRIDGE) and _everything_of_ray() <= before)


def _everything_of_ray() -> set[int]:
    """Heads, nodes and workers."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"/raylet/raylet" in command or b"/gcs_server" in command or command.startswith(b"ray::"):
                found.add(int(entry.name))
    return found


@pytest.mark.parametrize("kind", ["refused", "silent"])
def test_an_address_that_nobody_answers_at(folder: Folder, kind: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if kind == "silent":
            taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        folder.configure(executor={"ray": address})
        ran = folder.record("nobody")
    assert ran.code == 3
    assert address in ran.err or "was not ready within 60 s" in ran.err
    assert not workers(BRIDGE)


def test_no_cluster_on_this_machine(folder: Folder, cluster: RayCluster) -> None:
    folder.configure(executor={"ray": "auto"})
    ran = folder.record("nobody", RAY_ADDRESS="127.0.0.1:1", RAY_TMPDIR=str(folder.root))
    assert ran.code == 3
    assert "no Ray cluster at '127.0.0.1:1'" in ran.err


def test_no_value_of_a_secret_is_on_the_disk_of_the_cluster(tmp_path: Path, cluster: RayCluster) -> None:
    write_suite(tmp_path, cases=3, said=f"The word is {SECRET}.", executor={"ray": cluster.address})
    with (tmp_path / "rows.jsonl").open("a") as rows:
        write_suite(tmp_path / "more", cases=3)
        rows.write((tmp_path / "more" / "rows.jsonl").read_text().replace("case-", "other-"))
    folder = Folder(tmp_path, PYTHON, cluster.token)
    ran = folder.record("ray", THE_PASSWORD=SECRET)
    assert ran.code == 0, ran.err
    needle = SECRET.encode()
    files = [path for path in cluster.temporary.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if needle in path.read_bytes()]
