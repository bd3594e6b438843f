"""`gate site`: writes a static dashboard of suites over time."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import click

from gate.commands.common_options import CONFIG, SOURCES, SUITE
from gate.commands.groups import Once


@click.command(cls=Once)
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@SOURCES
@CONFIG
@SUITE
def site(out: Path, sources: tuple[Path, ...], config_path: Path, suite_id: str | None) -> None:
    """Write a dashboard of all suites.

    Writes pages of suites, criteria, tags, cases, versions, cost and time, and badges to the folder OUT: static
    files for a pages branch or an artifact, which load nothing from elsewhere. SOURCES are as for `gate history`.
    """
    from gate.insight.history import history_of
    from gate.insight.site import commit_link, write_site
    from gate.reports.formatting import count
    from gate.security.escape import console
    from gate.system.git import Git, GitError

    found = history_of(sources, config_path, os.environ, suite_id=suite_id)
    remote = ""
    with suppress(GitError):  # no repository or no remote: commits are shown without links
        remote = Git(config_path.absolute().parent, environment=os.environ).remote_url("origin")
    written = write_site(found, out, commits=commit_link(remote))
    for one in found.unread:
        click.echo(f"gate: left out {console(one.where)}: {console(one.why, 300)}", err=True)
    runs = sum(len(suite.runs) for suite in found.suites)
    click.echo(f"{written[0]}: {count(len(found.suites), 'suite')}, {count(runs, 'run')}")
