"""A configuration as pytest collects it: a file, its suites, and in each the verdict and the cases."""

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
"""The name of the item that has a suite's verdict."""


class GateFile(pytest.File):
    """A gate.yaml. Its suites are read when it is collected; no agent is started then."""

    problem: GateError | None = None
    """The reason why it could not be collected."""
    cases = 0
    """Number of items of its suites."""

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
    """The verdict of a suite, or one of its cases. What it came to is set before it is set up."""

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
        """Sets what it came to; what does not block is a skip that says so."""
        self.found = found
        self.user_properties.append(("gate", found.kind))
        if found.outcome is Outcome.SKIPPED:
            self.add_marker(pytest.mark.skip(reason=console(found.message)))

    def setup(self) -> None:
        if self.found.outcome is Outcome.ERROR:
            pytest.fail(self._told(), pytrace=False)

    def runtest(self) -> None:
        for line in self.found.output:
            self.add_report_section("call", "gate", console(line) + "\n")
        if self.found.outcome is Outcome.FAILED:
            pytest.fail(self._told(), pytrace=False)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        if self._place is None:
            return self.path, 0, self.name
        return Path(self._place.path), (self._place.line or 1) - 1, self.name

    def _told(self) -> str:
        return "\n".join(console(line) for line in (self.found.message, *self.found.details))


def _name(text: str) -> str:
    """An id as part of a node's id, which is cut at double colons where it is typed."""
    return console(text, 200).replace("::", ": :") or "(no name)"
