"""A configuration as pytest collects it: a file with its suites, each with the verdict and the cases."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gate.errors import GateError
from gate.model import Location
from gate.reports.checks import Outcome, ReportItem
from gate.security.escape import console

VERDICT = "verdict"
"""The name of the item for a suite's verdict."""


class GateFile(pytest.File):
    """A gate.yaml. Collecting it reads its suites and starts no agent."""

    problem: GateError | None = None
    """The reason why it could not be collected."""
    cases = 0
    """The number of cases in its suites."""

    def collect(self) -> Iterator[SuiteNode]:
        from gate.config.load import load_config
        from gate.config.resolve import make_plans

        try:
            plans = make_plans(load_config(Path(os.path.relpath(self.path))), os.environ)
        except GateError as error:
            self.problem = error
            raise self.CollectError(f"gate: {console(str(error))}") from None
        self.cases = sum(len(plan.suite.cases) for plan in plans)
        for plan in plans:
            cases = {case.id: case.location for case in plan.suite.cases}
            yield SuiteNode.from_parent(self, name=_name(plan.suite.id), suite_id=plan.suite.id, cases=cases)


class SuiteNode(pytest.Collector):
    """A suite: its verdict first, then its cases."""

    def __init__(self, *, suite_id: str, cases: Mapping[str, Location | None], **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.suite_id, self.cases = suite_id, cases

    def collect(self) -> Iterator[GateItem]:
        yield GateItem.from_parent(self, name=VERDICT, suite=self, case_id=None, place=None)
        for case_id, place in self.cases.items():
            yield GateItem.from_parent(self, name=_name(case_id), suite=self, case_id=case_id, place=place)


class GateItem(pytest.Item):
    """The verdict of a suite, or one of its cases. Its result is set before pytest sets it up."""

    def __init__(self, *, suite: SuiteNode, case_id: str | None, place: Location | None, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.suite, self.case_id, self._place = suite, case_id, place
        self.found = ReportItem(self.name, outcome=Outcome.ERROR, message="it was not run")

    @property
    def file(self) -> GateFile:
        parent = self.suite.parent
        assert isinstance(parent, GateFile)
        return parent

    def show(self, found: ReportItem) -> None:
        """Set the result; one that does not block becomes a skip with the reason."""
        self.found = found
        self.user_properties.append(("gate", found.kind))
        if found.outcome is Outcome.SKIPPED:
            self.add_marker(pytest.mark.skip(reason=console(found.message)))

    def setup(self) -> None:
        if self.found.outcome is Outcome.ERROR:
            pytest.fail(self._told(), pytrace=False)

    def runtest(self) -> None:
        if self.found.output:
            self.add_report_section("call", "gate", "\n".join(map(console, self.found.output)) + "\n")
        if self.found.outcome is Outcome.FAILED:
            pytest.fail(self._told(), pytrace=False)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        if self._place is None:
            return self.path, 0, self.name
        return Path(self._place.path), (self._place.line or 1) - 1, self.name

    def _told(self) -> str:
        return "\n".join(console(line) for line in (self.found.message, *self.found.details))


def _name(text: str) -> str:
    """Return an id for use in a node id, which pytest splits at double colons."""
    return console(text, 200).replace("::", ": :") or "(no name)"
