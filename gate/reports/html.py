"""The HTML report: one self-contained page, without scripts, under a policy that lets nothing be loaded or run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from gate.model import CaseResult, CriterionResult, Estimate, Result, Scale, SuiteResult
from gate.reports import labels as words
from gate.reports.formatting import change_interval, dimensions, evidence, interval, sample, threshold, tool_times
from gate.reports.trajectory_diff import differences
from gate.security.escape import html, one_line
from gate.security.limits import shorten

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--soft:#60646c;--line:#e3e5e8;--page:#fcfcfd;--card:#fff;
--good:#1a7f4b;--bad:#c62a2f;--warn:#9a6700;--mark:#3e63dd;--add:#e6f6eb;--del:#feebec}
@media(prefers-color-scheme:dark){:root{--ink:#edeef0;--soft:#a2a9b3;--line:#2e3338;--page:#111315;--card:#191b1e;
--good:#4cc38a;--bad:#ff8589;--warn:#e2a336;--mark:#8da4ef;--add:#11291c;--del:#3a1519}}
*{box-sizing:border-box}
body{margin:0 auto;padding:2.5rem 1.25rem 4rem;max-width:70rem;background:var(--page);color:var(--ink);
font:15px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif}
h1{font-size:1rem;font-weight:600;color:var(--soft);margin:0 0 1.5rem}
h2{font-size:1.5rem;line-height:1.25;margin:0;overflow-wrap:anywhere}
h3{font-size:1rem;margin:2rem 0 .5rem}
article{background:var(--card);border:1px solid var(--line);border-top:4px solid var(--tone);border-radius:10px;
padding:1.5rem 1.75rem;margin-bottom:2rem}
.unchecked{--tone:var(--soft)}.pass{--tone:var(--good)}.inconclusive,.not_measured{--tone:var(--warn)}
.below_threshold,.regressed,.error{--tone:var(--bad)}
.verdict{color:var(--tone);font-weight:600;white-space:nowrap}
.lead{font-size:1.1rem;margin:.35rem 0 1.25rem}
.soft{color:var(--soft);font-size:.85rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:.6rem .9rem .6rem 0;border-bottom:1px solid var(--line)}
td.figure{white-space:nowrap}
thead th{color:var(--soft);font-weight:500;font-size:.85rem}
tbody th{font-weight:600;overflow-wrap:anywhere;min-width:9rem}
.soft,.verdict{display:block}
tr.why td{padding-top:0;padding-bottom:.9rem}tr.figures th,tr.figures td{border-bottom:0;padding-bottom:.25rem}
details{border:1px solid var(--line);border-radius:8px;margin:.5rem 0;padding:.6rem .9rem}
summary{cursor:pointer;overflow-wrap:anywhere}summary .soft{display:inline;margin-left:.4rem}
pre,code{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{border:1px solid var(--line);border-radius:8px;padding:.6rem .75rem;margin:.6rem 0}
pre{white-space:pre-wrap;overflow-wrap:anywhere}pre span{display:block}
.add{background:var(--add)}.del{background:var(--del)}.turn{color:var(--soft)}
ul{padding-left:1.1rem;margin:.4rem 0}li{overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1.25rem;margin:1.5rem 0 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
svg{display:block;width:9rem;height:2.75rem}
svg .axis{stroke:var(--line)}svg .limit{stroke:var(--soft);stroke-dasharray:3 3}
svg .now{stroke:var(--tone);fill:var(--tone)}svg .before{stroke:var(--soft);fill:var(--soft)}
svg line{stroke-width:2}svg .axis,svg .limit{stroke-width:1}
.wanted{font-weight:400}td:last-child{padding-right:0}
@media(max-width:56rem){article{padding:1.25rem 1rem}thead{display:none}
table,tbody,tr,tbody th,td{display:block;padding-right:0}
td.figure{padding:.2rem 0}.figure .soft{display:inline;margin-left:.5rem}
.candidate::before{content:"candidate "}.baseline::before{content:"baseline "}.change::before{content:"change "}
.figure::before{color:var(--soft);display:inline-block;width:6.5rem}}
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"
_MANY = 200
_FEW = 5


def render(result: Result) -> str:
    """A whole page. Nothing in it is loaded from elsewhere; everything from outside is escaped and bounded."""
    tone, ends = words.VERDICTS[result.verdict], words.exit_line(result.exit_code, result.verdict)
    lines = "\n".join(_text(line) for line in words.command_lines(result.command))
    command = f"<h3>Reproduce locally</h3><pre><code>{lines}</code></pre>" if lines else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Agent Gate: {tone}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Agent Gate {_text(result.version, 30)}</h1>\n<main>\n"
        + "\n".join(_suite(suite, words.explain_line(result, suite)) for suite in result.suites)
        + f'\n</main>\n<footer>{command}<p class="soft">{ends}</p></footer>\n'
        + "</body>\n</html>\n"
    )


def _text(text: str, limit: int = 500) -> str:
    return html(one_line(text, limit))


def _suite(suite: SuiteResult, explain: str) -> str:
    accepted = f"<p>Accepted: {_text(suite.accepted)}</p>" if suite.accepted else ""
    worse = words.worse_cases(suite)
    parts = [
        f"<h2>{_text(suite.suite_id, 200)}</h2>",
        f'<span class="verdict">{words.VERDICTS[suite.verdict]}</span>',
        f'<p class="lead">{_text(suite.headline)}</p>{accepted}',
        _criteria(suite.criteria),
        _listed("Against further references", [words.further_line(one) for one in suite.further]),
        _cases(words.worse_title(worse), worse, opened=3),
        _cases("Cases with failing trials, not shown to be worse", words.failing_cases(suite), opened=0),
        _listed(
            "Passing more often than at the baseline",
            [f"{case.id}: {words.improvement(case)}" for case in words.improved_cases(suite)],
        ),
        f"<p>details: <code>{_text(explain)}</code></p>" if explain else "",
        _listed("What changed in the rules or suite", suite.changes),
        _listed("How the verdict came about", suite.story),
        _listed("Warnings", suite.warnings),
        _facts(suite),
    ]
    return f'<article class="{suite.verdict.value}">\n' + "\n".join(p for p in parts if p) + "\n</article>"


# --- criteria -------------------------------------------------------------------------------------


def _criteria(criteria: Sequence[CriterionResult]) -> str:
    if not criteria:
        return ""
    names = ("Criterion", "Candidate", "Baseline", "Change", "Intervals")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "\n".join(_criterion(c) for c in criteria[:_MANY])
    return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>'


def _criterion(result: CriterionResult) -> str:
    criterion, verdict = result.criterion, words.shown(result)
    advisory = "" if criterion.blocking or criterion.blocks_regression else " (warns only)"
    name = f'{_text(criterion.name, 200)}<span class="verdict">{words.standing(result)}{advisory}</span>'
    name += f'<span class="soft wanted">{threshold(criterion)}</span>'
    figures = (
        ("candidate", interval(result.candidate, criterion.scale), result.candidate),
        ("baseline", words.baseline_figure(result), result.baseline),
        ("change", change_interval(result.change, criterion.scale), result.change),
    )
    cells = "".join(
        f'<td class="figure {kind}">{figure}<span class="soft">{sample(rests)}</span></td>'
        for kind, figure, rests in figures
    )
    tone = verdict.value if words.is_ticked(result) or verdict.value != "pass" else "unchecked"
    why = _text(result.reason) + (f'<span class="soft">{evidence(result)}</span>' if evidence(result) else "")
    parts = [f"{_text(name, 80)} {said}" for name, said in dimensions(result)[:_MANY]]
    why += f'<span class="soft">{"; ".join(parts)}</span>' if parts else ""
    return (
        f'<tr class="figures {tone}"><th scope="row">{name}</th>{cells}'
        f"<td>{_plot(result)}</td></tr>\n"
        f'<tr class="why"><td colspan="5">{why}</td></tr>'
    )


def _plot(result: CriterionResult) -> str:
    """Both intervals on one axis, with the threshold as a dashed line; the table beside it has the figures."""
    rows = [(e, kind, y) for e, kind, y in ((result.candidate, "now", 15), (result.baseline, "before", 31)) if e]
    if not rows:
        return ""
    low, high = _axis(result, [e for e, _, _ in rows])

    def x(value: float) -> float:
        return round(6 + 132 * min(max((value - low) / (high - low), 0.0), 1.0), 1)

    marks = []
    limit = result.criterion.threshold
    if limit is not None:
        marks.append(f'<line class="limit" x1="{x(limit)}" x2="{x(limit)}" y1="2" y2="42"/>')
    for e, kind, y in rows:
        marks.append(f'<line class="{kind}" x1="{x(e.low)}" x2="{x(e.high)}" y1="{y}" y2="{y}"/>')
        marks.append(f'<circle class="{kind}" cx="{x(e.value)}" cy="{y}" r="3.5"/>')
    title = "candidate above, baseline below" + (", threshold dashed" if limit is not None else "")
    axis = '<line class="axis" x1="2" x2="142" y1="42" y2="42"/>'
    return f'<svg viewBox="0 0 144 44" role="img" aria-label="{title}">{axis}{"".join(marks)}</svg>'


def _axis(result: CriterionResult, estimates: Sequence[Estimate]) -> tuple[float, float]:
    bounds = {Scale.BINARY: (0.0, 1.0), Scale.UNIT: (0.0, 1.0), Scale.LIKERT: (1.0, 5.0), Scale.PERCENT: (0.0, 100.0)}
    if result.criterion.scale in bounds:
        return bounds[result.criterion.scale]
    limit = result.criterion.threshold
    highest = max([*(e.high for e in estimates), *([limit] if limit is not None else [])])
    return 0.0, highest * 1.1 if highest > 0 else 1.0


# --- cases ----------------------------------------------------------------------------------------


def _cases(title: str, cases: Sequence[CaseResult], *, opened: int) -> str:
    if not cases:
        return ""
    folds = [_case(case, index < opened) for index, case in enumerate(cases[:_MANY])]
    more = f'<p class="soft">… and {len(cases) - _MANY:,} more</p>' if len(cases) > _MANY else ""
    return f"<h3>{title}</h3>\n" + "\n".join(folds) + more


def _case(case: CaseResult, opened: bool) -> str:
    place = f' <span class="soft">{_text(str(case.location), 200)}</span>' if case.location else ""
    reasons = _items(case.reasons[:10])
    lines = []
    for turn in differences(case):
        lines.append(f'<span class="turn">{turn.title}</span>')
        kinds = {"-": ' class="del"', "+": ' class="add"'}
        lines += [f"<span{kinds.get(mark, '')}>{mark} {_text(text, 600)}</span>" for mark, text in turn.lines]
    diff = f"<pre>{''.join(lines)}</pre>" if lines else ""
    return (
        f"<details{' open' if opened else ''}><summary><strong>{_text(case.id, 200)}</strong> "
        f"{words.STATUSES[case.status]}, {words.tally(case)}{place}</summary>{reasons}{diff}</details>"
    )


def _items(texts: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{_text(text)}</li>" for text in texts) + "</ul>" if texts else ""


def _listed(title: str, texts: Sequence[str]) -> str:
    return f"<h3>{title}</h3>{_items(texts[:_MANY])}" if texts else ""


def _facts(suite: SuiteResult) -> str:
    facts = {
        "Cases": words.status_counts(suite),
        "Baseline": words.baseline_line(suite.baseline),
        "Cost": words.cost_line(suite),
        "Time per tool": "; ".join(f"{name} {said}" for name, said in tool_times(suite)[:_FEW]),
        "Candidate": shorten(suite.commit or "", 40),
        "Seed": str(suite.seed),
    }
    return (
        "<dl>" + "".join(f"<dt>{name}</dt><dd>{_text(value)}</dd>" for name, value in facts.items() if value) + "</dl>"
    )
