"""The option `--gate`. pytest imports this module in every session, and the rest of the gate only with the option."""

from __future__ import annotations

from pathlib import Path

import pytest

OPTION = "gate_configurations"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add ``--gate FILE``, which may be repeated.

    Turns off the rewriting of assertions in the gate's modules: it takes longer than all of their imports, and none of
    the assertions belongs to a test.
    """
    getattr(getattr(pluginmanager, "rewrite_hook", None), "_must_rewrite", set()).discard("gate")
    group = parser.getgroup("agent gate")
    words = "Run the suites of this gate.yaml, too: an item per case, the gate's verdict as exit code; may be repeated."
    group.addoption("--gate", action="append", default=[], dest=OPTION, metavar="FILE", help=words)


def pytest_configure(config: pytest.Config) -> None:
    """Register the collector and runner of cases if the option is given.

    A worker of pytest-xdist has nothing to do: the gate runs once, in the process that started the workers.
    """
    given = config.getoption(OPTION)
    if not given or hasattr(config, "workerinput"):
        return
    from gate.errors import GateError
    from gate.pytest_plugin.session import GateSession
    from gate.security.escape import console

    distributed = config.getoption("dist", "no") != "no" and not config.getoption("collectonly")
    try:
        session = GateSession(config, list(dict.fromkeys(map(Path, given))), distributed=distributed)
    except GateError as error:
        pytest.exit(f"gate: {console(str(error))}", returncode=int(error.exit_code))
    config.pluginmanager.register(session, "agent-gate-session")
