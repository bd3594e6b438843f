"""Baselines in the object stores of real servers on loopback: SeaweedFS for S3's protocol, Azurite for Azure's.

No server of Google Cloud Storage that keeps its conditions installs from an index: `gs://` goes the same way, untested.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import Struct, json

from gate.baselines.base import StoreSettings
from gate.baselines.bucket import BucketStore
from gate.errors import BaselineError
from tests.acceptance.conftest import Project
from tests.unit.baselines.samples import commit, make_record

pytestmark = pytest.mark.connectors
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's own, which is no secret."""
WRITERS = 8
AGENT = "def answer(message):\n    return f'the right answer to {message}' + WORDS\n"


class Bucket(Struct):
    """A server with one empty bucket."""

    url: str
    endpoint: str
    environment: dict[str, str]

    def opened(self, **options: str) -> BucketStore:
        given = {"url": self.url, "endpoint": self.endpoint, **options}
        return BucketStore.open(StoreSettings(Path(), self.environment, options=given))


def _free_ports(count: int) -> list[int]:
    """Ports that are free. SeaweedFS takes each plus 10,000, too, which is below those that connections are given."""
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(12_000, 22_000)
        with socket.socket() as one, socket.socket() as other:
            if not one.connect_ex(("127.0.0.1", port)) or not other.connect_ex(("127.0.0.1", port + 10_000)):
                continue
        found.append(port)
    return found


@contextmanager
def _served(command: list[str], port: int) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(600):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert server.poll() is None, f"{command[0]} ended with {server.returncode} as it started"
                time.sleep(0.1)
            yield
        finally:
            server.kill()  # of nothing that is kept; SeaweedFS takes half a minute to end by itself


@contextmanager
def _s3(buckets: Path, folder: Path) -> Iterator[Bucket]:
    s3, master, volume, filer = _free_ports(4)
    signs_in = (
        '{"identities": [{"name": "t", "credentials": [{"accessKey": "AK", "secretKey": "SK"}], "actions": ["Admin"]}]}'
    )
    (folder / "s3.json").write_text(signs_in)
    local = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", f"-s3.config={folder / 's3.json'}"]
    ports = [f"-s3.port={s3}", f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}"]
    alone = ["-s3", "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.volumeSizeLimitMB=32"]
    with _served([str(buckets.parent / "weed"), "server", *alone, *local, *ports], s3):
        endpoint = f"http://127.0.0.1:{s3}"
        bucket = Bucket("s3://baselines/agents", endpoint, {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "SK"})
        store = bucket.opened()
        for _ in range(60):
            try:  # it listens before it has room to write in
                store.put("warm/up", b"x", store.get("warm/up"))
                break
            except BaselineError:
                try:
                    store.put("warm/up", b"x", None)
                    break
                except BaselineError:
                    time.sleep(0.5)
        yield bucket


@contextmanager
def _azure(buckets: Path, _folder: Path) -> Iterator[Bucket]:
    azurite = Path(os.environ.get("GATE_AZURITE", "azurite-blob"))
    if not azurite.exists():
        pytest.skip("Azurite comes from npm, which is not here")
    [port] = _free_ports(1)
    quiet = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    with _served([str(azurite), "--blobHost", "127.0.0.1", "--blobPort", str(port), *quiet], port):
        endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        made = (
            "import sys; from azure.storage.blob import BlobServiceClient as C; C(sys.argv[1], credential=sys.argv[2])"
        )
        subprocess.run([str(buckets), "-c", f"{made}.create_container('baselines')", endpoint, KEY], check=True)
        environment = {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY}
        yield Bucket("az://baselines/agents", endpoint, environment)


@pytest.fixture(scope="module", params=[_s3, _azure], ids=["s3", "azure"])
def bucket(request: pytest.FixtureRequest, buckets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with request.param(buckets, tmp_path_factory.mktemp("bucket")) as served:
        yield served


WRITER = """
import sys

import msgspec
from tests.connectors.test_buckets import Bucket
from tests.unit.baselines.samples import make_record
bucket, record = msgspec.json.decode(sys.argv[1], type=Bucket).opened(), make_record(1, run=sys.argv[2])
sys.stdin.read()
bucket.save(record)
"""
"""A job that is ready and waits until all of them are."""


def test_of_eight_writers_none_loses_anything(bucket: Bucket) -> None:
    told, root = json.encode(bucket).decode(), Path(__file__).parents[2]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, told, f"run {number}"], stdin=subprocess.PIPE, cwd=root)
        for number in range(WRITERS)
    ]
    time.sleep(3)  # imports
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()
    assert [writer.wait(timeout=300) for writer in writers] == [0] * WRITERS
    found = bucket.opened().find("support", [commit(1)])
    assert found is not None
    assert len(found.records[0].trials) == WRITERS * len(make_record(1).trials)


def test_a_truncated_upload_is_refused(bucket: Bucket) -> None:
    store = bucket.opened(url=f"{bucket.url}/cut")
    key = store.save(make_record(2))
    data = store.get(key)
    assert data is not None
    assert store.put(key, data[:-40], data)
    with pytest.raises(BaselineError):
        bucket.opened(url=f"{bucket.url}/cut").find("support", [commit(2)])


def test_a_list_of_more_than_a_page_is_whole(bucket: Bucket) -> None:
    """A page of S3 has 1,000 names, one of Azure 5,000."""
    store, names = bucket.opened(url=f"{bucket.url}/many"), 1_100 if bucket.url.startswith("s3:") else 5_100
    assert all(store.put(f"suite/{number:05}.jsonl", b"x", None) for number in range(names))
    assert len(set(store.keys("suite/"))) == names


def test_a_bucket_that_does_not_exist_is_no_store_without_baselines(bucket: Bucket) -> None:
    scheme = bucket.url.partition(":")[0]
    with pytest.raises(BaselineError):
        bucket.opened(url=f"{scheme}://nobodys/agents").find("support", [commit(1)])


def test_who_may_not_read_is_told(bucket: Bucket) -> None:
    wrong = {
        name: "d3Jvbmc=" if "KEY" in name and "ID" not in name else value for name, value in bucket.environment.items()
    }
    stranger = Bucket(bucket.url, bucket.endpoint, wrong)
    with pytest.raises(BaselineError) as refused:
        stranger.opened().find("support", [commit(1)])
    assert "\n" not in str(refused.value)
    assert "d3Jvbmc=" not in str(refused.value)


def test_a_change_is_compared_with_what_the_bucket_has(bucket: Bucket, project: Project) -> None:
    cases = [{"id": f"c{n}", "input": f"item {n}", "response": f"the right answer to item {n}"} for n in range(20)]
    project.write("suite.yaml", {"cases": cases})
    store = {"store": "bucket", "url": f"{bucket.url}/flow", "endpoint": bucket.endpoint}
    agent = {"python": "agent:answer", "timeout": "20s"}
    project.write(
        "gate.yaml",
        {"suite": "suite.yaml", "agent": agent, "criteria": {"response_match_score": 0.5}, "baseline": store},
    )
    project.write(".gitignore", ".gate/\n__pycache__/\n")
    project.write("agent.py", AGENT.replace("WORDS", "''"))
    project.commit()
    assert project.gate("run", **bucket.environment).code == 0
    saved = project.gate("baseline", "save", **bucket.environment)
    assert saved.code == 0, saved.err
    project.write("agent.py", "def answer(message):\n    return 'no idea'\n")
    project.commit("change")
    ran = project.gate("run", **bucket.environment)
    assert ran.code == 1, ran.out + ran.err
    assert "regressed" in ran.out
    listed = project.gate("baseline", "list", **bucket.environment)
    assert listed.code == 0
    assert "suite.yaml" in listed.out
