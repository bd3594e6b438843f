"""The entrypoint: the environment travels in a file in memory."""

from __future__ import annotations

import json
import os

from gate.action.entrypoint import _take


def test_the_environment_is_taken_from_the_file_as_it_was_and_the_file_is_closed() -> None:
    environment = {"INPUT_TOKEN": "secret", "odd": "\udcff", "empty": ""}
    handed = os.memfd_create("environment", 0)
    os.write(handed, json.dumps(environment).encode("ascii"))
    assert _take(handed) == environment
    try:
        os.fstat(handed)
    except OSError:
        return
    raise AssertionError("the file is still open")
