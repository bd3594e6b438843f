"""Publishes a result on the hosts that the configuration names. A failure to publish never changes the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from gate.errors import PublishError
from gate.hosts import HOSTS, read_host_options
from gate.hosts.base import Applies, Done, Effect, Host, PostComment, Publication, WriteSummary, publish
from gate.model import Result
from gate.reports.markdown import Place, render, render_suite
from gate.security.limits import described


def publish_result(
    result: Result, hosts: Mapping[str, Mapping[str, Any]], environment: Mapping[str, str]
) -> Publication:
    """Publish a summary, and a comment per suite.

    Args:
        result: the result to publish.
        hosts: name of a host → its options, as under ``publish``.
        environment: the process's variables.

    Raises:
        ConfigError: a host is unknown, or does not have such an option.
    """
    all_of_them = Publication()
    for name, options in hosts.items():
        done = _publish_on(name, options, result, environment)
        all_of_them = Publication(
            (*all_of_them.urls, *done.urls),
            (*all_of_them.notes, *done.notes),
            (*all_of_them.problems, *done.problems),
        )
    return all_of_them


def _publish_on(name: str, options: Mapping[str, Any], result: Result, environment: Mapping[str, str]) -> Publication:
    read = read_host_options(name, options, f"publish.{name}")
    try:
        with _as_publish_errors(name):
            host = HOSTS.load(name).open(read, environment)
            if host is None:
                return Publication(notes=(HOSTS.load(name).nowhere,))
            with closing(host):
                return publish(_effects(result, host), _Guarded(name, host))
    except PublishError as error:
        return Publication(problems=(error,))


@contextmanager
def _as_publish_errors(name: str) -> Iterator[None]:
    """Turn whatever a plugin's host raises into a PublishError. An error of our own hosts is a bug, and stays one."""
    try:
        yield
    except PublishError:
        raise
    except (Exception, SystemExit) as error:
        if name in HOSTS:
            raise
        raise PublishError(f"the host raised {described(error)}", where=name) from error


def _effects(result: Result, host: Host) -> list[Effect]:
    place = Place(head=host.head, url=host.url)
    return [WriteSummary(render(result, place=place)), *comments_on(result, place, failed=bool(result.exit_code))]


def comments_on(result: Result, place: Place, *, failed: bool) -> list[Effect]:
    """Return the comment on each suite; ``failed``: it says why the job failed."""
    found: list[Effect] = []
    for suite in result.suites:
        found.append(PostComment(suite.suite_id, render_suite(suite, result, place=place), failed))
    return found


class _Guarded(Applies):
    """Wraps a plugin's host and turns each of its failures into a PublishError, so that later effects are still
    applied."""

    def __init__(self, name: str, host: Host) -> None:
        self._name, self._host = name, host

    def apply(self, effect: Effect) -> Done:
        with _as_publish_errors(self._name):
            done: object = self._host.apply(effect)
        return done if isinstance(done, Done) else Done()
