"""What all tests share: property tests without deadlines, since a busy machine is no defect of the code."""

from hypothesis import HealthCheck, settings

from tests import warm

settings.register_profile("gate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gate")


def pytest_unconfigure() -> None:
    warm.end()
