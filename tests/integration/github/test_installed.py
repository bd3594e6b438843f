"""An agent that the action's input `setup` installs from the work tree: the base's agent would be the change's code."""

from __future__ import annotations

import os

import pytest

from tests.integration.github.job import AGENT
from tests.integration.github.scenarios import World

PEOPLES = "from impl import answer\n"
LINK = "import site; open(site.getsitepackages()[0] + '/impl.pth', 'w').write('$PWD/src')"
"""As `pip install -e .` leaves it, without downloading what builds a package."""


@pytest.mark.slow
@pytest.mark.usefixtures("uv")
def test_a_loss_of_what_setup_installed_is_not_drift(world: World) -> None:
    place = {"PATH": os.environ["PATH"]}
    inputs = {"setup": f'python -c "{LINK}"  # and all of . with it'}
    good = AGENT.replace('with_name("behaviour.txt").read_text().strip()', 'stem and "good"')
    bad = good.replace('"bad": number < 12', '"good": number < 12').replace('"good": False,', "")
    world.repository.files |= {"agent.py": PEOPLES, "src/impl.py": good}
    assert world.push("good", environment=place, inputs=inputs).code == 0
    done = world.pull_request("good", environment=place, inputs=inputs, files={"src/impl__py": bad})
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    why = "src/impl.py differs (`agent.path: [src]` would import each commit's own), and this job's environment was"
    assert why in " ".join(done.log.split())
