"""Our scores against those that google-adk 2.13.0 gave; tests/oracle/make_stored_scores.py wrote them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gate.metrics.recorded import score_lines

_FILE = Path(__file__).with_name("stored_scores.jsonl.gz")
STORED = [json.loads(line) for line in gzip.decompress(_FILE.read_bytes()).decode().splitlines()]
KINDS = sorted({(answer["metric"], json.dumps(answer["options"])) for pair in STORED for answer in pair["answers"]})


def test_enough_is_stored_to_mean_anything() -> None:
    assert len(STORED) == 400
    assert len(KINDS) == 11
    scores = [answer["score"] for pair in STORED for answer in pair["answers"] if answer["score"] is not None]
    assert len(set(scores)) > 300


@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("metric", "options"), KINDS)
def test_every_score_is_google_adks_to_the_last_bit(metric: str, options: str, every: int) -> None:
    wanted = [
        (pair, answer)
        for pair in STORED[::every]
        for answer in pair["answers"]
        if (answer["metric"], json.dumps(answer["options"])) == (metric, options)
    ]
    lines = [json.dumps({key: pair[key] for key in ("id", "actual", "expected")}) for pair, _ in wanted]
    ours = [json.loads(line) for line in score_lines(metric, json.loads(options), lines)]
    assert [_told(one) for one in ours] == [_told(answer) for _, answer in wanted]


def _told(answer: dict[str, Any]) -> Any:
    return "not measured" if answer["score"] is None else (answer["score"], answer["per_turn"])
