"""Groups that import a sub-command on first use, and commands that refuse repeated options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click
from click.core import ParameterSource

from gate.errors import closest

REMOVED_COMMANDS = {"baseline diff": "write `gate compare NEW OLD`, and `gate explain --case ID` for one case's trials"}
"""Sub-commands that earlier versions had, each with what to do instead."""


class Once(click.Command):
    """A command that refuses a repeated option unless it allows several values; otherwise the last would win."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for param in dict.fromkeys(order):
            is_one = isinstance(param, click.Option) and not (param.multiple or param.is_flag or param.count)
            if is_one and order.count(param) > 1:
                raise click.UsageError(f"{param.opts[-1]} is given {order.count(param)} times: give it once", ctx=ctx)
        return super().parse_args(ctx, args)


class OnceGroup(Once, click.Group):
    """A group of sub-commands that all refuse repeated options."""

    command_class = Once

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        advice = REMOVED_COMMANDS.get(f"{ctx.info_name} {args[0]}")
        if advice:
            raise click.UsageError(f"{args[0]} was removed: {advice}", ctx=ctx)
        return super().resolve_command(ctx, args)


def refuse_options_before_subcommand(ctx: click.Context) -> None:
    """Raise UsageError for an option before the sub-command's name, because the sub-command would not see it."""
    for param in ctx.command.params:
        if ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{param.opts[-1]} belongs after {ctx.invoked_subcommand!r}", ctx=ctx)


class LazyGroup(click.Group):
    """A group that imports its sub-commands by name.

    Args:
        lazy: the ``module:attribute`` of each sub-command, by its name on the command line.
        sections: the names by purpose, as listed in the help.
    """

    def __init__(
        self, *args: Any, lazy: Mapping[str, str], sections: Mapping[str, Sequence[str]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lazy, self._sections = lazy, sections

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._lazy:
            return None
        module, _, attribute = self._lazy[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the sub-commands by section, each with its full first sentence, which click would cut off."""
        for section, names in self._sections.items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, command.get_short_help_str(limit=200)) for name, command in found if command is not None]
            with formatter.section(section):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        near = None if name in self._lazy or ctx.resilient_parsing else closest(name, self._lazy)
        if near is not None:
            raise click.UsageError(f"no such command {name!r}: did you mean {near!r}?", ctx=ctx)
        return super().resolve_command(ctx, args)
