"""Baselines in a bucket, in obstore's own store in memory: its conditions are the real ones, its network is none.

tests/connectors has the same against servers.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from gate.baselines import STORES
from gate.baselines.base import StoreSettings
from gate.baselines.bucket import SCHEMES, BucketStore, signing_in, told
from gate.errors import BaselineError, BaselineWriteError, ConfigError, GateError
from tests.unit.baselines.samples import commit, make_record

WRITERS = 8


def opened(bucket: MemoryStore) -> BucketStore:
    return BucketStore(bucket, "memory")  # type: ignore[arg-type]


def test_what_is_saved_is_found_by_another_process() -> None:
    bucket = MemoryStore()
    opened(bucket).save(make_record(3))
    found = opened(bucket).find("support", [commit(4), commit(3)])
    assert found is not None
    assert (found.commit, found.info.distance) == (commit(3), 1)
    assert opened(bucket).find("other", [commit(3)]) is None
    assert [entry.commit for entry in opened(bucket).entries("support")] == [commit(3)]


def test_of_eight_writers_none_loses_anything() -> None:
    bucket = MemoryStore()
    problems: list[BaseException] = []

    def write(number: int) -> None:
        try:
            opened(bucket).save(make_record(1, run=f"run {number}"))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    found = opened(bucket).find("support", [commit(1)])
    assert found is not None
    assert len(found.records[0].trials) == WRITERS * len(make_record(1).trials)


def test_a_write_on_top_of_what_was_read_long_ago_is_refused() -> None:
    bucket = MemoryStore()
    one, other = opened(bucket), opened(bucket)
    assert one.put("s/k", b"first", None)
    assert not other.put("s/k", b"second", None)
    assert (one.get("s/k"), other.get("s/k")) == (b"first", b"first")
    assert other.put("s/k", b"second", b"first")
    assert not one.put("s/k", b"third", b"first")
    assert one.get("s/k") == b"second"


def test_what_was_never_read_is_not_written_over() -> None:
    bucket = MemoryStore()
    opened(bucket).put("s/k", b"first", None)
    assert not opened(bucket).put("s/k", b"second", b"first")


@pytest.mark.parametrize("cut", [lambda data: data[:-30], lambda data: data[: len(data) // 2], lambda _: b""])
def test_a_truncated_upload_is_refused(cut: object) -> None:
    bucket = MemoryStore()
    key = opened(bucket).save(make_record(1))
    bucket.put(key, cut(bytes(bucket.get(key).bytes())))  # type: ignore[operator]
    with pytest.raises(BaselineError) as refused:
        opened(bucket).find("support", [commit(1)])
    assert key in refused.value.where
    with pytest.raises(BaselineWriteError):
        opened(bucket).save(make_record(1, run="another"))


def test_a_key_that_only_begins_alike_is_another_suites() -> None:
    bucket = MemoryStore()
    for key in ("a/1.jsonl", "ab/1.jsonl"):
        bucket.put(key, b"x")
    assert list(opened(bucket).keys("a/")) == ["a/1.jsonl"]
    assert sorted(opened(bucket).keys("")) == ["a/1.jsonl", "ab/1.jsonl"]


def test_a_copy_that_was_put_aside_is_not_read_in_place_of_the_record() -> None:
    bucket = MemoryStore()
    key = opened(bucket).save(make_record(1))
    folder, _, name = key.rpartition("/")
    for aside in (f"{folder}/~old/{name}", f"{folder}/0/{name}", f"~{folder}/x/{name}", "top.jsonl"):
        bucket.put(aside, b"not a record")
    found = opened(bucket).find("support", [commit(1)])
    assert found is not None
    assert found.info.source == key
    assert [entry.where for entry in opened(bucket).entries()] == [key]
    assert [stored.where for stored in opened(bucket).contents()] == [key]


def test_more_than_is_read_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gate.baselines.bucket.MAX_DOCUMENT_BYTES", 10)
    bucket = MemoryStore()
    bucket.put("s/k", b"x" * 11)
    with pytest.raises(BaselineError, match="11 bytes"):
        opened(bucket).get("s/k")


@pytest.mark.parametrize(
    "url",
    ["", "bucket", "file:///tmp/x", "memory:///", "https://example.com/b", "s3://", "s3://key:word@b", "s3://b?x=1"],
)
def test_what_is_no_bucket_is_said(url: str) -> None:
    with pytest.raises(ConfigError, match=r"baseline\.url.*known: s3://"):
        STORES.load("bucket").open(StoreSettings(Path(), options={"url": url}))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_server_that_is_not_there_is_one_line_without_secrets(scheme: str) -> None:
    environment = {
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "hidden",
        "AZURE_STORAGE_ACCOUNT_NAME": "account",
        "AZURE_STORAGE_SAS_KEY": "sv=1&sig=hidden",
        "GOOGLE_SERVICE_ACCOUNT_KEY": '{"gcs_base_url":"http://127.0.0.1:1","disable_oauth":true,"client_email":"",'
        '"private_key":"hidden","private_key_id":""}',
    }
    options = {"url": f"{scheme}://bucket/prefix", "endpoint": "" if scheme == "gs" else "http://127.0.0.1:1"}
    try:
        store = BucketStore.open(StoreSettings(Path(), environment, options=options))
        with pytest.raises(BaselineError) as raised:
            store.find("support", [commit(1)])
        said: GateError = raised.value
    except ConfigError as error:
        said = error
    assert "\n" not in str(said)
    assert "hidden" not in str(said)


def test_only_the_variables_that_sign_in_there_are_handed_over() -> None:
    environment = {"AWS_SECRET_ACCESS_KEY": "a", "AWS_LAMBDA_NAME": "b", "AZURE_STORAGE_TOKEN": "c", "AWS_REGION": ""}
    assert signing_in(environment, SCHEMES["s3"]) == {"aws_secret_access_key": "a"}


def test_an_error_is_a_line_without_signatures() -> None:
    said = told(RuntimeError("GET https://x.example/b?sig=hidden&x=1 failed\nDebug source: everything"))
    assert said == "the bucket cannot be used: GET https://x.example/b?… failed"
