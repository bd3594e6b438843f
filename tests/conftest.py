"""What all tests share: how properties are tried, and the end of the processes that commands are forked from."""

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from tests import warm
from tests.properties import QUICK, THOROUGH

for name, number in (("quick", QUICK), ("thorough", THOROUGH)):  # no deadlines: a busy machine is no defect of the code
    settings.register_profile(name, max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quick")

# Once Python's readline is imported, every process that is started without an environment of its own is told the width
# of a terminal that is not there: only the C library knows of it, or it is inherited, as by workers of pytest-xdist.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)
    os.unsetenv(name)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes half a million objects that stay: looking for garbage among them is a third of its time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    warm.end()
