"""A fake GitHub that must not have been violated when the test is over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

openapi_core = pytest.importorskip("openapi_core", reason="the contract is checked with openapi-core")

from tests.integration.github.fake_github import FakeGitHub  # noqa: E402


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with FakeGitHub() as github:
        yield github
    assert github.violations == []
