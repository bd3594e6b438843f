"""What all tests share: how properties are tried, and the end of the processes that commands are forked from."""

import gc
import os
import ssl
import subprocess
from collections.abc import Generator
from pathlib import Path

import certifi
import pytest
from hypothesis import HealthCheck, settings

from gate.security.environment import CI_SYSTEMS
from tests import warm
from tests.properties import QUICK, THOROUGH

OF_A_JOB = ("CI_", "GITHUB_", "GITLAB_", "RUNNER_", "ACTIONS_", "INPUT_")
"""What the names of the variables start with in which CI systems describe a job."""

for name, number in (("quick", QUICK), ("thorough", THOROUGH)):  # no deadlines: a busy machine is no defect of the code
    settings.register_profile(
        name, max_examples=number, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("quick")

# Once Python's readline is imported, every process that is started without an environment of its own is told the width
# of a terminal that is not there: only the C library knows of it, or it is inherited, as by workers of pytest-xdist.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)
    os.unsetenv(name)

# Each client of HTTP would read the authorities of this machine, for 40 ms. None of them has signed a server here, and
# a test of TLS names a certificate of its own.
NOBODY = Path(__file__).with_name("nobody.pem")
ssl.SSLContext.load_default_certs = lambda *_: None  # type: ignore[method-assign]
certifi.where = lambda: str(NOBODY)
# What installs packages is given the machine's authorities back, by the names that begin with ``GATE_TESTS_``.
for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
    authorities = os.environ.pop(name, None)
    if authorities is not None:
        os.environ[f"GATE_TESTS_{name}"] = authorities

# What a CI system says of its job would decide where records are kept, what is compared and who is told.
for name in [name for name in os.environ if name in CI_SYSTEMS or name.startswith(OF_A_JOB)]:
    del os.environ[name]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a certificate for `localhost`, `cert.pem`, and its key, `key.pem`."""
    path = tmp_path_factory.mktemp("tls")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=DNS:localhost"]
    made += ["-keyout", str(path / "key.pem"), "-out", str(path / "cert.pem")]
    try:
        subprocess.run(made, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return path


LONG = (
    "unit/pipeline/test_division.py",
    "unit/reports/test_claims_hold.py",
    "unit/statistics/test_concentration.py",
    "unit/test_benchmarks.py",
    "unit/decision/test_rules.py",
    "unit/traces/test_reader.py",
)
"""Files with long tests among the last ones: at the end of a run they would keep one core waiting."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONG))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes half a million objects that stay: looking for garbage among them is a third of its time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    warm.end()
