"""What all tests share: how properties are tried, and the end of the processes that commands are forked from."""

import os

from hypothesis import HealthCheck, settings

from tests import warm
from tests.properties import QUICK, THOROUGH

for name, number in (("quick", QUICK), ("thorough", THOROUGH)):  # no deadlines: a busy machine is no defect of the code
    settings.register_profile(name, max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quick")

# Once Python's readline is imported, every process that is started without an environment of its own is told the width
# of a terminal that is not there; pytest-xdist's workers are.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)


def pytest_unconfigure() -> None:
    warm.end()
