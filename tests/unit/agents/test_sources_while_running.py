"""The sources proposed for random agents hold every file that they open while they run."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from gate.agents.sources import sources_of
from gate.baselines.fingerprint import files_named

RUN = """\
import os, runpy, sys
top, entry, *folders = sys.argv[1:]
sys.path[:0] = [os.path.dirname(entry), top, *folders]
def show(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        print(os.path.relpath(os.path.realpath(arguments[0]), top))
sys.addaudithook(show)
runpy.run_path(entry)
"""
"""A program that runs another and prints the files that it opens."""
FOLDERS = ("", "app", "app/core", "libs/shared", "libs/shared/src", "data", "texts", "texts/en", "vendor/x", "conf")
CODE_FOLDERS = ("", "app", "app/core", "libs/shared", "libs/shared/src", "vendor/x")
READ_SETTINGS = """\
said = (pathlib.Path(ROOT) / "settings/s0.yaml").read_text().split()
inside = said[3] + "/" + said[1]
for one in (said[1], "settings/" + said[1], inside, said[1].strip("/"), inside + ".txt"):
    if os.path.isfile(os.path.join(ROOT, one)):
        open(os.path.join(ROOT, one)).read()
"""


def reading(rng: random.Random, path: str) -> str:
    """Code that opens a file: by its whole path, by parts, by a name that it puts together, or through settings."""
    place = Path(path)
    folder, name, stem, suffix = place.parent.as_posix(), place.name, place.stem, place.suffix
    return rng.choice(
        [
            f"open(os.path.join(ROOT, {folder!r}, {name!r})).read()\n",
            f"(pathlib.Path(ROOT) / {path!r}).read_text()\n",
            f"name = {stem!r}\n(pathlib.Path(ROOT) / {folder!r} / f'{{name}}{suffix}').read_text()\n",
            f"name = {stem[:2]!r}\n(pathlib.Path(ROOT) / {folder!r} / (name + {stem[2:] + suffix!r})).read_text()\n",
            f"open(ROOT + '/' + '{folder}/%s' % {name!r}).read()\n",
            f"open('{{}}/{folder}/{{}}{suffix}'.format(ROOT, {stem!r})).read()\n",
            READ_SETTINGS,
        ]
    )


def random_agent(rng: random.Random) -> tuple[dict[str, str], str, list[str]]:
    """Files of a repository, the module that starts its agent, and the folders that modules are imported from."""
    files = {}
    for _ in range(8):
        name = rng.choice(("system", "rules", "agent", "greet", "tone")) + rng.choice((".txt", ".md", "", ".yaml"))
        files[(Path(rng.choice(FOLDERS)) / name).as_posix()] = "x"
    texts = list(files)
    for number in range(2):
        text = Path(rng.choice(texts))
        named = rng.choice([str(text), text.name, text.stem, os.path.relpath(text, "settings"), f"/{text}"])
        files[f"settings/s{number}.yaml"] = f"prompt: {named}\nfolder: {text.parent}\n"
    folders, above, entry = [], "", ""
    for number in range(rng.randint(1, 4)):
        folder, package = rng.choice(CODE_FOLDERS), rng.choice(("", f"p{number}"))
        folders.append(folder)
        if package and rng.random() < 0.6:
            files[(Path(folder, package) / "__init__.py").as_posix()] = ""
        entry = (Path(folder, package) / f"m{number}.py").as_posix()
        code = f"import os, pathlib\nROOT = str(pathlib.Path(__file__).resolve().parents[{entry.count('/')}])\n"
        if above:
            code += rng.choice([f"import {above}\n", f"from {above} import ROOT as OTHER\n"])
        files[entry] = code + reading(rng, rng.choice([*texts, "settings/s0.yaml", "settings/s1.yaml"]))
        above = f"{package}.m{number}" if package else f"m{number}"
    return {**files, "README.md": "x", "tests/test_a.py": "import pytest\n"}, entry, folders


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(8, 304, 8))])
def test_no_file_that_is_opened_is_missed(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + 8):
        root = tmp_path.resolve() / str(seed)
        files, entry, folders = random_agent(random.Random(seed))
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        command = [
            sys.executable,
            "-B",
            "-S",
            "-c",
            RUN,
            str(root),
            str(root / entry),
            *(str(root / one) for one in folders),
        ]
        ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        opened = {entry, *ran.stdout.splitlines()} & files.keys()
        found = sources_of([entry], root, files)
        assert found.problem == "", (seed, found)
        assert opened <= set(files_named(files, found.names, [entry])), (seed, found, opened)
