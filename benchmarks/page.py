"""The options of the programs behind docs/dev/evidence, and the writing of a table into a page."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from gate.statistics.intervals import wilson

VERDICTS = ("pass", "inconclusive", "regressed")


class Simulated(Protocol):
    """A world in which runs are simulated to their verdicts."""

    @property
    def name(self) -> str: ...
    @property
    def cases(self) -> int: ...
    @property
    def wanted(self) -> Sequence[str]: ...


W = TypeVar("W", bound=Simulated)
Played = Sequence[tuple[Any, ...]]
"""The outcome of each run of a world: its verdict, its agent runs, and a further number of the program's own."""


def parser(doc: str | None, *, seed: int, runs: int | None = None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if runs is not None:
        made.add_argument("--runs", type=int, default=runs)
    made.add_argument("--seed", type=int, default=seed)
    made.add_argument("--only", default="", help="Rows whose name holds this text.")
    made.add_argument("--processes", type=int, default=2)
    made.add_argument("--write", type=Path, help="Put the tables between the marks of this page.")
    return made


def show(lines: Iterable[str]) -> list[str]:
    """Prints lines as they come, and keeps them."""
    kept = []
    for line in lines:
        print(line, flush=True)
        kept.append(line)
    return kept


def write(page: Path, section: str, lines: Sequence[str]) -> None:
    """Puts lines between ``<!-- section -->`` and ``<!-- /section -->``, below the command that they are from."""
    text = page.read_text(encoding="utf-8")
    opening, closing = f"<!-- {section} -->\n", f"<!-- /{section} -->\n"
    before, found, rest = text.partition(opening)
    _, ended, after = rest.partition(closing)
    if not (found and ended):
        raise SystemExit(f"{page} has no place for this table: {opening.strip()} … {closing.strip()}")
    body = "\n".join([f"From `{_command()}`:", "", *lines])
    page.write_text(f"{before}{opening}{body}\n{closing}{after}", encoding="utf-8")


def write_rows(page: Path, section: str, lines: Sequence[str]) -> None:
    """Put rows into a table that stands on a page, in place of those with the same first cell; new ones at its end."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(f"<!-- {section} -->\n")
    table, closing, after = rest.partition(f"<!-- /{section} -->\n")
    given = {line.split(" | ")[0]: line for line in lines if line.startswith("| ")}
    rows = [given.pop(line.split(" | ")[0], line) for line in table.splitlines()]
    page.write_text(
        f"{before}<!-- {section} -->\n" + "\n".join([*rows, *given.values()]) + f"\n{closing}{after}", encoding="utf-8"
    )


def publish(sections: Mapping[str, Iterable[str]], page: Path | None) -> None:
    """Prints the tables one after the other; each is put into its section of the page, if one is given."""
    for name, lines in sections.items():
        shown = show(lines)
        print()
        if page is not None:
            write(page, name, shown)


def verdicts(names: Sequence[str], found: Sequence[str], wanted: Sequence[str], digits: int = 3) -> list[str]:
    """Cells of a row: the share of each verdict, and that of those that are wanted with Wilson's 95 % interval."""
    counts, n = Counter(found), len(found)
    shares = [f"{counts[name] / n:.{digits}f}" if counts[name] else "–" for name in names]
    low, high = wilson(sum(counts[name] for name in wanted), n)
    return [*shares, f"{' or '.join(wanted)} [{low:.{digits}f}, {high:.{digits}f}]"]


def per_case(place: int) -> Callable[[Simulated, Played], str]:
    """A column: the mean of the number at this place of what each run came to, for each of the world's cases."""
    return lambda world, played: f"{sum(run[place] for run in played) / (len(played) * world.cases):.2f}"


def mean(place: int) -> Callable[[Simulated, Played], str]:
    """A column: the mean of what is at this place of what each run came to."""
    return lambda _, played: f"{sum(run[place] for run in played) / len(played):.2f}"


def how_many(_: Simulated, played: Played) -> str:
    """A column: the runs that were simulated."""
    return str(len(played))


def simulated(
    doc: str | None,
    argv: Sequence[str] | None,
    section: str,
    worlds: Iterable[W],
    play: Callable[[W, int], tuple[Any, ...]],
    columns: Mapping[str, Callable[[W, Played], str]],
    *,
    runs: int = 200,
    names: Sequence[str] = VERDICTS,
) -> int:
    """Plays worlds to their verdicts, and publishes a row for each: the share of each verdict before its columns."""
    made = parser(doc, runs=runs, seed=0)
    made.add_argument("--section", default=section, help="Where in the page the table belongs.")
    given = made.parse_args(argv)

    def table(pool: ProcessPoolExecutor) -> Iterator[str]:
        head = ["world", *names, "wanted, with Wilson's 95 % interval", *columns]
        yield f"| {' | '.join(head)} |"
        yield "|---" * len(head) + "|"
        for world in (one for one in worlds if given.only in one.name):
            seeds = range(given.seed, given.seed + given.runs)
            played = list(pool.map(partial(play, world), seeds, chunksize=5))
            cells = verdicts(names, [run[0] for run in played], world.wanted)
            yield f"| {' | '.join([world.name, *cells, *(told(world, played) for told in columns.values())])} |"

    with ProcessPoolExecutor(given.processes) as pool:
        publish({given.section: table(pool)}, given.write)
    return 0


def _command() -> str:
    """Return the command that made this table, without the place it was written to and what only this machine knows."""
    said, given = [], iter(sys.argv[1:])
    for word in given:
        if word in ("--write", "--keep", "--processes", "--data", "--peers", "--section", "--json", "--repository"):
            next(given, None)
        else:
            said.append(word)
    return shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *said])


def head(first: str, columns: Sequence[str]) -> Iterator[str]:
    """Return the two lines that a Markdown table begins with."""
    yield f"| {first} | " + " | ".join(columns) + " |"
    yield "|---|" + "---|" * len(columns)


def share(count: int, n: int, digits: int = 3) -> str:
    """A count as a share with Wilson's 95 % interval."""
    if not n:
        return "–"
    low, high = wilson(count, n)
    return f"{count / n:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"
