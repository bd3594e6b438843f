"""A name means what is built in, else what an installed package offers; nothing is imported before it is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gate.agents import AGENTS
from gate.baselines import STORES
from gate.errors import ConfigError
from gate.metrics import METRICS, load_metric
from gate.registry import Registry
from gate.reports import REPORTS
from gate.suites import FORMATS

BUILT_IN = {"console": "gate.reports.console:render", "junit": "gate.reports.junit:render"}


def registry(**given: object) -> Registry[object]:
    return Registry("report", "agent_gate.reports", BUILT_IN, **given)  # type: ignore[arg-type]


def install(folder: Path, package: str, entries: str, code: str = "def render(result):\n    return 'theirs'\n") -> None:
    """A package as pip leaves it behind: its module, and its metadata with entry points."""
    module = package.replace("-", "_")
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[agent_gate.reports]\n{entries}\n")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("builtin", [METRICS, AGENTS, STORES, REPORTS, FORMATS], ids=lambda one: one.group)
def test_every_built_in_name_leads_somewhere(builtin: Registry[object]) -> None:
    assert builtin.names() == list(builtin)
    assert all(builtin.load(name) is not None for name in builtin)


def test_a_name_of_another_package_is_imported_when_it_is_asked_for(installed: Path) -> None:
    install(installed, "acme-late", "slides = acme_late:render")
    reports = registry()
    assert reports.is_known("slides")
    assert "acme_late" not in sys.modules
    render = reports.load("slides")
    assert callable(render)
    assert render(None) == "theirs"
    assert "slides" not in reports, "a table of what is built in"
    assert reports.names() == [*reports, "slides"]


def test_a_built_in_name_is_never_replaced(installed: Path) -> None:
    install(installed, "acme-first", "junit = acme_first:render")
    found = registry().load("junit")
    assert getattr(found, "__module__", "") == "gate.reports.junit"
    assert "acme_first" not in sys.modules


def test_two_packages_that_offer_one_name_are_both_named(installed: Path) -> None:
    install(installed, "acme-one", "slides = acme_one:render")
    install(installed, "acme-two", "slides = acme_two:render")
    with pytest.raises(ConfigError, match="report 'slides' is offered by acme-one and acme-two"):
        registry().load("slides")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nowhere_at_all\n", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("raise SystemExit('stop\\nhere')\n", "SystemExit: stop here"),
        ("", "AttributeError: module 'acme_broken' has no attribute 'render'"),
    ],
)
def test_a_package_that_cannot_be_imported_is_one_line(installed: Path, code: str, said: str) -> None:
    sys.modules.pop("acme_broken", None)
    install(installed, "acme-broken", "slides = acme_broken:render", code)
    with pytest.raises(ConfigError) as raised:
        registry().load("slides", where="gate.yaml:3")
    assert str(raised.value) == f"gate.yaml:3: report 'slides' of the package acme-broken cannot be imported: {said}"
    assert raised.value.exit_code == 2


def test_what_is_no_plugin_of_this_kind_is_refused(installed: Path) -> None:
    install(installed, "acme-other", "slides = acme_other:render")
    stores = registry(base="gate.baselines.blobs:BlobStore")
    with pytest.raises(ConfigError, match="report 'slides' of the package acme-other is not a BlobStore"):
        stores.load("slides")


def test_an_unknown_name_says_the_nearest_and_who_offers_it(installed: Path) -> None:
    install(installed, "acme-named", "slides = acme_named:render")
    with pytest.raises(ConfigError, match=r"unknown report 'slidez' \(did you mean 'slides', of acme-named\?\)"):
        registry().load("slidez")
    with pytest.raises(ConfigError, match=r"unknown report 'junti' \(did you mean 'junit'\?\)"):
        registry().load("junti")
    with pytest.raises(ConfigError, match=r"unknown report 'xyz' \(known: console, junit, slides \(acme-named\)\)"):
        registry().load("xyz")


def test_no_metadata_is_read_for_a_built_in_name() -> None:
    code = (
        "import sys; before = 'importlib.metadata' in sys.modules\n"
        "from gate.reports import load_report; load_report('junit')\n"
        "print(before or 'importlib.metadata' not in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_an_unknown_metric_lists_some_and_counts_the_rest() -> None:
    with pytest.raises(ConfigError, match=r"unknown metric 'zzzqqq' \(known: accuracy, .* and \d+ more") as raised:
        load_metric("zzzqqq")
    assert len(str(raised.value)) < 600
