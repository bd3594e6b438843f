from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.judges.judge_stub import JudgeStub


@pytest.fixture
def stub() -> Iterator[JudgeStub]:
    with JudgeStub() as judge:
        yield judge
