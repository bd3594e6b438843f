"""A file holds the verdict of the run that was asked to write it, or says that this run has none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gate.errors import ExitCode
from gate.reports import REPORTS
from gate.reports.files import Outputs, check_outputs, write_reports, write_stubs

from .hostile import SOME_AND_ALL
from .samples import PASSED, result

WHY = "agent: no module named 'nope'"


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outputs:
    monkeypatch.chdir(tmp_path)
    return Outputs({form: tmp_path / form for form in REPORTS if form != "console"})


def test_what_holds_the_verdict_is_left_as_it_is(outputs: Outputs) -> None:
    check_outputs(outputs)
    write_reports(result(PASSED), outputs)
    before = {path: path.read_bytes() for path in outputs.paths.values()}
    write_stubs(outputs.beside(Path(), {}), WHY, ExitCode.INTERRUPTED)
    assert {path: path.read_bytes() for path in outputs.paths.values()} == before


@SOME_AND_ALL
def test_whatever_ended_the_run_stays_text(outputs: Outputs, texts: tuple[str, ...]) -> None:
    for text in texts:
        write_stubs(outputs, text, ExitCode.NOT_MEASURED)
        page = outputs.paths["html"].read_text(encoding="utf-8")
        assert page.count("<") == 15, "our own tags, the mark, and no other"


def test_a_report_of_which_no_form_is_known_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "plugin.txt"
    path.write_text("pass")
    write_stubs(Outputs({"of-a-plugin": path}), WHY, ExitCode.NOT_MEASURED)
    assert not path.exists()


def test_a_report_that_cannot_be_written_leaves_no_earlier_one(
    outputs: Outputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: there is no room for a new one, but the old one can go."""
    path = outputs.paths["junit"]
    path.write_text("<testsuites/>")

    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gate.reports.files.files.write_text", full)
    told = write_reports(result(PASSED), Outputs({"junit": path}))
    assert told.exit_code is ExitCode.NOT_MEASURED
    assert not path.exists()


def test_no_link_and_no_device_is_followed_or_removed(outputs: Outputs, tmp_path: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "link"
    other.write_text("mine")
    link.symlink_to(other)
    write_stubs(Outputs({"junit": link, "ctrf": Path(os.devnull), "of-a-plugin": link}), WHY, ExitCode.NOT_MEASURED)
    assert (other.read_text(), link.is_symlink(), Path(os.devnull).exists()) == ("mine", True, True)
