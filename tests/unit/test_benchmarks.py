"""The programs behind docs/dev/evidence: what they draw, count and write."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

from benchmarks import assumptions, flow, frontier, others, page, recorded, rules, run, simulate
from gate.decision import Settings
from gate.decision.engine import drift, evidence

REPOSITORY = Path(__file__).parents[2]
STEADY = [[1.0] * 5] * 20
SLOW = pytest.mark.slow


def cell(*, blocked: int = 0, inconclusive: int = 0, passed: int = 0, runs: float = 1.0) -> simulate.Cell:
    counts = {"REGRESSION": blocked, "INCONCLUSIVE": inconclusive, "PASS": passed}
    return simulate.Cell([simulate.Answer(v, runs) for v, n in counts.items() for _ in range(n)])


# --- pages ----------------------------------------------------------------------------------------


def test_a_table_goes_between_its_marks_below_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/rules.py", "--runs", "7", "--write", "/home/me/p.md", "--peers", "/home/me"])
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- rules -->\nold\n<!-- /rules -->\nafter\n")
    page.write(path, "rules", ["| new |"])
    assert path.read_text() == (
        "before\n<!-- rules -->\nFrom `python benchmarks/rules.py --runs 7`:\n\n| new |\n<!-- /rules -->\nafter\n"
    )


def test_a_page_without_a_place_for_the_table_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("<!-- rules -->\nno end\n")
    with pytest.raises(SystemExit, match="no place for this table"):
        page.write(path, "rules", [])
    assert path.read_text() == "<!-- rules -->\nno end\n"


def test_rows_that_were_played_again_take_the_place_of_theirs(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    kept = "before\n<!-- rule -->\nFrom `x`:\n\n| world | n |\n|---|---|\n"
    path.write_text(f"{kept}| a, unchanged | 1 |\n| b | 2 |\n<!-- /rule -->\nafter\n")
    page.write_rows(path, "rule", ["| world | n |", "|---|---|", "| b | 3 |", "| c | 4 |"])
    assert path.read_text() == f"{kept}| a, unchanged | 1 |\n| b | 3 |\n| c | 4 |\n<!-- /rule -->\nafter\n"


def test_chains_that_are_kept_are_not_played_again(tmp_path: Path) -> None:
    first, second = (flow.Ran(chain, "merge", 0, "pass", 1.0, 5.0, 0, 0, 0, "said") for chain in (1, 2))
    path = tmp_path / "kept.jsonl"
    assert flow.known(path) == {}
    flow.keep(path, [first])
    flow.keep(path, [second])
    assert {chain: [ran.verdict for ran in played] for chain, played in flow.known(path).items()} == {
        1: ["pass"],
        2: ["pass"],
    }


def test_the_pages_have_a_place_for_every_table() -> None:
    text = (REPOSITORY / "docs/dev/evidence/decision.md").read_text(encoding="utf-8")
    names = (
        "rule",
        "rules",
        "installed",
        "agents",
        "noise",
        "damage",
        "assumptions",
        "baselines",
        "creep",
        "power",
        "frontier",
        "small",
        "stored",
        "wanted",
        "prove",
    )
    for name in names:
        assert f"<!-- {name} -->\n" in text and f"<!-- /{name} -->\n" in text, name
    text = (REPOSITORY / "docs/dev/evidence/flow.md").read_text(encoding="utf-8")
    for name in (*flow.AGENTS, "free"):
        assert f"<!-- {name} -->\n" in text and f"<!-- /{name} -->\n" in text, name
    text = (REPOSITORY / "docs/dev/evidence/world.md").read_text(encoding="utf-8")
    for name in ("history", "suites"):
        assert f"<!-- {name} -->\n" in text and f"<!-- /{name} -->\n" in text, name
    text = (REPOSITORY / "docs/dev/evidence/mutants.md").read_text(encoding="utf-8")
    for name in ("mutants", "kinds", "survivors"):
        assert f"<!-- {name} -->\n" in text and f"<!-- /{name} -->\n" in text, name


def test_the_frontier_moves_from_the_record_that_never_counts_to_stored_trials_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module, name in ((drift, "AGREES"), (drift, "AFTER_FALL"), (evidence, "BESIDE")):
        monkeypatch.setattr(module, name, getattr(module, name))  # put back afterwards
    never, always = frontier.POINTS[0], frontier.POINTS[-1]
    moved = simulate.World("moved", cases=20, drift=0.5, config=simulate.MATCH)
    assert [frontier.play_at(point, moved, 1).verdict for point in (never, always)] == ["INCONCLUSIVE", "REGRESSION"]
    (patient,) = (point for point in frontier.POINTS if point.after_fall == 1)
    fell = simulate.World("slightly", cases=40, drift=0.2, config=simulate.MATCH)
    runs = [
        sum(frontier.play_at(point, fell, n).runs_per_case for n in range(5)) for point in (frontier.CHOSEN, patient)
    ]
    assert runs[0] < runs[1], "a base that fell is asked in fewer cases"
    assert frontier.CHOSEN in frontier.POINTS
    known = {world.name for world in simulate.worlds()}
    assert known.issuperset((*frontier.CHANGED, *frontier.UNCHANGED)), "worlds that the page has, too"


def test_rules_beside_the_one_that_stands_spend_the_same_error() -> None:
    spent = [sum(looking.shares) for looking in frontier.LOOKING]
    assert spent == pytest.approx([evidence.ONE_LOOK_SHARE] * len(frontier.LOOKING))


def test_the_loop_that_tells_how_fast_a_machine_is_never_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run.LOOP_ROUNDS == 2_000_000
    assert run.fixed_loop(5_000) == 224_315
    monkeypatch.setattr(run, "LOOP_ROUNDS", 10)
    [[what, took, bound]] = run.machine(1)
    assert "fixed loop" in what and float(took.removesuffix(" s")) >= 0 and not bound


# --- the simulator --------------------------------------------------------------------------------


def test_targets_are_of_worlds_that_are_simulated() -> None:
    names = [world.name for world in simulate.worlds()]
    assert len(names) == len(set(names))
    assert set(simulate.TARGETS) <= set(names)


def test_what_is_said_of_a_target() -> None:
    for name, found, said in [
        ("typical, N = 300, unchanged", cell(blocked=10, passed=990), "met"),
        ("typical, N = 300, unchanged", cell(blocked=40, passed=960), "**blocked ≤ 0.02 missed**"),
        ("typical, N = 300, unchanged", cell(blocked=22, passed=978), "blocked ≤ 0.02?"),
        ("typical, N = 100, −5 points", cell(blocked=500, passed=500, runs=2), "**blocked ≥ 0.66 missed**"),
        ("typical, N = 30, unchanged", cell(inconclusive=200, passed=800), "**inconclusive ≤ 0.08 missed**"),
        ("typical, N = 100, unchanged", cell(passed=10, runs=1.7), "**runs ≤ 1.6 missed**"),
        ("typical, N = 300, −5 points", cell(passed=10), ""),
    ]:
        assert said in simulate.missed(name, found) if said else simulate.missed(name, found) == "", (name, found)


def test_runs_beyond_a_target_by_chance_are_no_miss() -> None:
    spread = [simulate.Answer("PASS", 1.5 + 2 * (i % 4 == 0)) for i in range(400)]  # 2 on average, ± .085
    more = [*spread, *([simulate.Answer("PASS", 3.5)] * 4)]
    assert simulate.missed("drift −2 points, base can be run", simulate.Cell(spread)) == "met"
    assert simulate.missed("drift −2 points, base can be run", simulate.Cell(more)) == "runs ≤ 2?"


def test_a_seed_gives_the_same_simulated_change_again() -> None:
    world = simulate.World("x", cases=12, broken=1)
    assert simulate.play(world, 3) == simulate.play(world, 3)
    assert simulate.play(world, 3).runs_per_case >= 1


def test_a_trial_has_a_value_for_every_metric() -> None:
    for metrics in [1, 3, 5, 10]:
        agent = simulate.Agent(simulate.World("x", cases=4, metrics=metrics), Random(1))
        rows = [row for trials in agent.baseline().values() for row in trials]
        assert {len(row) for row in rows} == {metrics}, metrics


def test_a_pass_that_rules_out_a_true_loss_is_counted() -> None:
    passed = simulate.Answer("PASS", 1.0)
    wrong = simulate.Answer("PASS", 1.0, overruled=True)
    assert simulate.Cell([passed, wrong, passed, simulate.Answer("REGRESSION", 1.0)]).overruled == 0.25


# --- other gates ----------------------------------------------------------------------------------


def test_rules_see_the_outcomes_of_the_same_simulated_change() -> None:
    world = simulate.World("x", cases=10)
    before, now = rules.outcomes(world, 5, 3)
    assert ({len(trials) for trials in before}, {len(trials) for trials in now}) == ({5}, {3})
    assert (before, now) == rules.outcomes(world, 5, 3)
    assert rules.every_case(STEADY, [[1.0, 0.0]]) and not rules.every_case(STEADY, STEADY)


def test_a_gate_is_asked_in_its_own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "def decide(before, now, alpha):\n    return 'blocked' if now[0] < before[0] else 'pass'"
    monkeypatch.setattr(others, "GATES", {"strict": others.Gate("strict==1", "the sum", code)})
    (tmp_path / "strict" / "bin").mkdir(parents=True)
    (tmp_path / "strict" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "strict" / "installed").touch()
    asked = [([[1.0]], [[1.0]]), ([[1.0]], [[0.0]])]
    assert others.ask("strict", asked, 0.02, tmp_path) == ["pass", "blocked"]


# --- recorded trials ------------------------------------------------------------------------------


def agents() -> dict[str, recorded.Agent]:
    steady = {f"task-{n:02d}": [1.0] * 5 for n in range(20)}
    worse = {task: [0.0] * 5 if n < 10 else [1.0] * 5 for n, task in enumerate(steady)}
    return {"steady": steady, "worse": worse}


def test_every_split_and_every_two_agents_are_compared() -> None:
    found = list(recorded.pairs(agents()))
    kinds = [pair.kind for pair in found]
    assert kinds.count(recorded.SAME) == 2 * 20
    assert kinds.count(recorded.WORSE) == kinds.count(recorded.BETTER) == 1
    same = next(pair for pair in found if pair.kind == recorded.SAME)
    assert {len(t) for t in same.before} | {len(t) for t in same.now} == {2, 3}


def test_an_agent_that_lost_half_of_its_tasks_is_blocked_and_the_same_agent_is_not() -> None:
    found = list(recorded.pairs(agents()))
    assert recorded.ours(next(p for p in found if p.kind == recorded.WORSE)) == "blocked"
    assert recorded.ours(next(p for p in found if p.kind == recorded.SAME)) == "pass"


# --- assumptions ----------------------------------------------------------------------------------


def test_luck_and_sessions_are_what_they_say() -> None:
    rng = Random(1)
    rates = assumptions.typical(rng, 30)
    assert set(rates) == set(assumptions.ids(30)) and all(0 <= p <= 1 for p in rates.values())
    names = [name for name, _, _ in assumptions.rows()]
    assert len(names) == len(set(names))


@SLOW
def test_a_chain_of_changes_loses_what_is_not_blocked() -> None:
    lost, blocked = assumptions.creep(anchored=True, seed=1)
    assert lost == pytest.approx(assumptions.MERGES - blocked, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("since", "seeds", "blocked"), [(0, 1, 1), pytest.param(0, 3, 3, marks=SLOW), pytest.param(7, 3, 0, marks=SLOW)]
)
def test_a_drift_that_nights_have_measured_blocks_no_change(since: int, seeds: int, blocked: int) -> None:
    said = [assumptions.nights(0.15, since, Settings(), seed).verdict for seed in range(seeds)]
    assert said.count("REGRESSION") == blocked


# --- the flow -------------------------------------------------------------------------------------


def test_the_flows_agent_answers_by_its_seed_and_count() -> None:
    def answers(kind: str) -> list[object]:
        job = flow.Job("one", 1, 100, "varied")
        return [job.answer(kind, case) for case in range(100) for _ in range(2)]

    assert answers("unchanged") == answers("unchanged")
    rates, _ = flow.truth(1, "merge", 100)
    assert flow.truth(1, "unchanged", 100)[0] == rates
    broken, _ = flow.truth(1, "broken", 100)
    assert sum(now < before for now, before in zip(broken, rates, strict=True)) == 1
    ten, _ = flow.truth(1, "ten", 100)
    assert sum(rates) - sum(ten) == pytest.approx(10)
    assert len(flow.truth(1, "crash", 100)[1]) == 3
    job = flow.Job("one", 1, 100, "varied")
    for case in flow.truth(1, "crash", 100)[1]:
        job.answer("crash", case)
    assert job.asked.total() == 3 and 0 <= job.crashed <= 3


@pytest.mark.parametrize("guide", ["gitlab", "other"])
def test_the_flow_runs_the_lines_of_the_guides(guide: str) -> None:
    script = flow.lines_of(guide)
    assert "gate run" in script and "gate baseline save" in script
    assert "<commit>" not in script


def ran(kind: str, verdict: str, crashed: int = 0) -> flow.Ran:
    return flow.Ran(1, kind, 0, verdict, runs=1.5, stored=5.0, named=0, named_wrongly=0, crashed=crashed, said="")


def test_the_flows_table_tells_crashes_that_were_met_from_those_that_were_not() -> None:
    found = [ran("broken", "regressed"), ran("broken", "pass"), ran("crash", "pass"), ran("crash", "regressed", 2)]
    lines = "\n".join(flow.table(found))
    assert "| one case broke | 1 of 2 (0.09–0.91) |" in lines
    assert "met in the run | 1 of 1" in lines
    assert "none met | 0 of 1" in lines


@SLOW
def test_a_small_flow_runs_from_the_first_push_to_the_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent is Python; tests/acceptance/test_programs.py runs the program with one behind HTTP and all merges."""
    monkeypatch.setattr(flow, "MERGES", 0)
    assert flow.main(["--chains", "1", "--cases", "8", "--only", "unchanged", "--agent", "python"]) == 0
    table = capsys.readouterr().out
    assert "| first push | 0 of 1" in table and "| unchanged | 0 of 1" in table
