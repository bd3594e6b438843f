"""`gate help`: a short page on a topic, or a command's own help."""

from __future__ import annotations

import click

from gate.commands.groups import Once


@click.command("help", cls=Once)
@click.argument("topic", required=False)
@click.pass_context
def help_on(context: click.Context, topic: str | None) -> None:
    """Explain a topic: cases, criteria, agent, ci or baseline.

    TOPIC may also be a command. Without it, lists the commands.
    """
    from gate.commands.texts.help import TOPICS
    from gate.errors import nearest

    parent = context.parent
    assert parent is not None
    assert isinstance(parent.command, click.Group)
    if topic is None:
        click.echo(parent.get_help())
    elif topic in TOPICS:
        click.echo(TOPICS[topic].strip())
    elif (command := parent.command.get_command(parent, topic)) is not None:
        click.echo(command.get_help(click.Context(command, parent, topic)))
    else:
        known = list(dict.fromkeys([*TOPICS, *parent.command.list_commands(parent)]))
        raise click.UsageError(f"no topic {topic!r}: {nearest(topic, known)}", ctx=context)
