"""Measures what the gate writes by hand beside the libraries that could do it.

The figures are those of docs/dev/decisions/0002-libraries.md.

    python benchmarks/libraries.py [part …]

Each candidate runs in a process of its own and is measured in processor time, so a busy machine changes little. A
library that is not installed is skipped; none of them needs to be, and the page says which versions were weighed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent

CASE = """\
  - id: case-%d
    tags: [smoke, billing]
    turns:
      - user: Where is my order?
        expected: {response: It is on its way., tools: [{name: lookup_order, args: {order: %d, verbose: true}}]}
    metadata: {owner: support, weight: 1.5}
"""
YAML = f"n = 10_000; text = 'cases:\\n' + ''.join({CASE!r} % (i, i) for i in range(n))"
WORDS = """
import random
rng = random.Random(1)
ends = ["", "s", "ed", "ing", "ation", "ness", "ful", "izer"]
words = ["".join(rng.choices("aeioubcdlmnrst", k=rng.randint(3, 9))) + rng.choice(ends) for _ in range(20_000)]
pairs = [(" ".join(words[i : i + 200]), " ".join(words[i + 50 : i + 250])) for i in range(0, 5_000, 50)]
"""
LINES = "lines = [f'answer {i}: it is on its way, token=abc{i}' for i in range(1_000)]"
URLS = "urls = [f'https://example{i}.test/path?q=1' for i in range(10_000)]"
HARMLESS = """lines = [
    'commit 3f786850e387550fdab836ed7e6dc881de23001b is on main', 'The token limit is 4096.', 'secret = getpass()',
    'Order ORD-20260114-88231 ships on 2026-01-20.', 'checksum d41d8cd98f00b204e9800998ecf8427e',
    'Please reset your password: open Settings, then Security.', 'tracking number 1Z999AA10123456784',
    'id "550e8400-e29b-41d4-a716-446655440000"', 'call 10.0.0.12:8080 and https://user@host/x',
    '"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"',
]"""
ANSWERS = (
    "answers = ['See [the **page**](https://a.test/x) and ![i](https://b.test)\\n\\n- one\\n- `two`\\n' * 5] * 200"
)
DIFFER = (
    "note = str(sum(ours != other for ours, other in zip(map(stem, words), found))) + ' of 20,000 differ from NLTK'"
)
PORTER = "from gate.metrics.porter import stem\n"


@dataclass(frozen=True)
class Candidate:
    part: str
    name: str
    package: str = ""
    """The distribution that is weighed; empty for the gate's own code."""
    load: str = "pass"
    data: str = "pass"
    work: str = "pass"
    after: str = "pass"
    """May set `note`."""


CANDIDATES = (
    Candidate(
        "yaml",
        "gate.formats.documents, 10,000 cases with lines",
        load="from gate.formats.documents import parse_document_with_lines",
        data=YAML,
        work="value, lines = parse_document_with_lines(text, 'f'); [lines.line('cases', i) for i in range(n)]",
    ),
    Candidate(
        "yaml", "pyyaml events", "pyyaml", "import yaml", YAML, "for _ in yaml.parse(text, yaml.CSafeLoader): pass"
    ),
    Candidate("yaml", "pyyaml nodes", "pyyaml", "import yaml", YAML, "yaml.compose(text, yaml.CSafeLoader)"),
    Candidate("yaml", "pyyaml load, no lines", "pyyaml", "import yaml", YAML, "yaml.load(text, yaml.CSafeLoader)"),
    Candidate(
        "yaml",
        "ruamel.yaml round trip, with lines",
        "ruamel.yaml",
        "from ruamel.yaml import YAML",
        YAML,
        "value = YAML().load(text); [value['cases'].lc.item(i) for i in range(n)]",
    ),
    Candidate(
        "edits",
        "ruamel.yaml, the YAML in docs/ read and written again",
        "ruamel.yaml",
        "import io, pathlib, re; from ruamel.yaml import YAML",
        "pages = [path.read_text() for path in pathlib.Path('docs').rglob('*.md')]\n"
        r"blocks = [block for page in pages for block in re.findall(r'(?ms)^```yaml\n(.*?)^```', page)]",
        """
changed = 0
for text in blocks:
    out, yaml = io.StringIO(), YAML()
    yaml.dump(yaml.load(text), out)
    changed += text != out.getvalue()
""",
        "note = f'{changed} of {len(blocks)} come back changed'",
    ),
    Candidate(
        "statistics",
        "gate.statistics, 1,000 beta quantiles",
        load="from gate.statistics.intervals import beta_quantile",
        work="[beta_quantile(0.975, k % 50 + 1, 50 - k % 50) for k in range(1_000)]",
    ),
    Candidate(
        "statistics",
        "scipy.stats",
        "scipy",
        "from scipy import stats",
        work="[stats.beta.ppf(0.975, k % 50 + 1, 50 - k % 50) for k in range(1_000)]",
    ),
    Candidate(
        "statistics",
        "scipy.special",
        "scipy",
        "from scipy import special",
        work="[special.betaincinv(k % 50 + 1, 50 - k % 50, 0.975) for k in range(1_000)]",
    ),
    Candidate("stemmer", "gate.metrics.porter, 20,000 words", "", PORTER, WORDS, "found = [stem(w) for w in words]"),
    Candidate(
        "stemmer",
        "nltk",
        "nltk",
        "from nltk.stem.porter import PorterStemmer",
        WORDS,
        "found = [PorterStemmer().stem(w) for w in words]",
        PORTER + DIFFER,
    ),
    Candidate(
        "stemmer",
        "PyStemmer",
        "PyStemmer",
        "import Stemmer",
        WORDS,
        "found = Stemmer.Stemmer('porter').stemWords(words)",
        PORTER + DIFFER,
    ),
    Candidate(
        "rouge",
        "gate.metrics.rouge, 100 pairs of 200 words",
        load="from gate.metrics.rouge import rouge_1",
        data=WORDS,
        work="[rouge_1(*pair) for pair in pairs]",
    ),
    Candidate(
        "rouge",
        "rouge_score",
        "rouge_score",
        "from rouge_score.rouge_scorer import RougeScorer",
        WORDS,
        "scorer = RougeScorer(['rouge1'], use_stemmer=True); [scorer.score(*pair) for pair in pairs]",
    ),
    Candidate("hosts", "gate.hosts.github and httpx", load="import httpx; from gate.hosts import github"),
    Candidate("hosts", "PyGithub", "PyGithub", "import github"),
    Candidate("hosts", "githubkit", "githubkit", "import githubkit.versions.latest.models"),
    Candidate(
        "redaction",
        "gate.security.redact, 1,000 lines",
        load="from gate.security.redact import Redactor; redactor = Redactor(())",
        data=LINES,
        work="[redactor.redact(line) for line in lines]",
    ),
    Candidate(
        "redaction",
        "detect-secrets",
        "detect-secrets",
        "from detect_secrets.core.scan import scan_line; from detect_secrets.settings import default_settings",
        LINES,
        "with default_settings(): found = [list(scan_line(line)) for line in lines]",
    ),
    Candidate(
        "redaction",
        "gate.security.redact, harmless lines",
        load="from gate.security.redact import Redactor; redactor = Redactor(())",
        data=HARMLESS,
        work="found = [line for line in lines if redactor.redact(line) != line]",
        after="note = f'{len(found)} of {len(lines)} taken for secrets'",
    ),
    Candidate(
        "redaction",
        "detect-secrets, harmless lines",
        "detect-secrets",
        "from detect_secrets.core.scan import scan_line; from detect_secrets.settings import default_settings",
        HARMLESS,
        "with default_settings(): found = [line for line in lines if list(scan_line(line))]",
        "note = f'{len(found)} of {len(lines)} taken for secrets'",
    ),
    Candidate("redaction", "presidio-analyzer", "presidio-analyzer", "import presidio_analyzer"),
    Candidate("git", "gate.system.git", load="from gate.system import git"),
    Candidate("git", "GitPython", "GitPython", "import git"),
    Candidate("git", "pygit2", "pygit2", "import pygit2"),
    Candidate(
        "html",
        "gate.reports.html on jinja2, 5,000 cases",
        "jinja2",
        "from gate.reports.html import render",
        """
from msgspec.structs import replace
from tests.unit.reports.samples import RESULTS
result = RESULTS["regressed"]
suite = result.suites[0]
cases = tuple(replace(suite.cases[i % len(suite.cases)], id=f"case-{i}") for i in range(5_000))
result = replace(result, suites=(replace(suite, cases=cases),))
""",
        "page = render(result)",
        "note = f'{len(page) / 1e6:.2f} MB'",
    ),
    Candidate("html", "jinja2", "jinja2", "import jinja2"),
    Candidate("progress", "rich", "rich", "from rich.progress import Progress; from rich.console import Console"),
    Candidate("progress", "tqdm", "tqdm", "from tqdm import tqdm"),
    Candidate(
        "regex",
        "regex, catastrophic pattern with timeout=0.2",
        "regex",
        "import regex",
        "pattern, text = r'(?:a|aa)+$', 'a' * 5_000 + 'b'",
        """
try: regex.search(pattern, text, timeout=0.2)
except TimeoutError: pass
""",
    ),
    Candidate(
        "regex", "regex, compiling 14 characters", "regex", "import regex", work="regex.compile('(?:a{1000}){1000}')"
    ),
    Candidate(
        "regex",
        "regex, texts on which it disagrees with re",
        "regex",
        "import re, regex",
        r"PATTERNS = (r'\w', r'\W', r'\b', r'\B'); marks = ['\u0301', '\u200d', 'e\u0301', 'x\u0301y', '', 'I\u0307']",
        "bad = sum(bool(re.search(p, t)) != bool(regex.search(p, t)) for p in PATTERNS for t in marks)",
        "note = f'{bad} of 24 answers differ'",
    ),
    Candidate(
        "regex",
        "google-re2, patterns that it refuses",
        "google-re2",
        "import re2",
        r"patterns = [r'(?!refund)', r'(?<=order )\d+', r'(\w)\1', r'a++b']",
        """
refused = 0
for pattern in patterns:
    try: re2.compile(pattern)
    except re2.error: refused += 1
""",
        "note = f'{refused} of {len(patterns)}'",
    ),
    Candidate(
        "urls",
        "gate.metrics.weburl on ada-url, 10,000 links",
        "ada-url",
        "from gate.metrics.weburl import place_of; import ada_url",
        URLS,
        "[place_of(url) for url in urls]",
    ),
    Candidate(
        "markup",
        "gate.metrics.markup, 200 answers",
        load="from gate.metrics.markup import targets",
        data=ANSWERS,
        work="[list(targets(answer)) for answer in answers]",
    ),
    Candidate(
        "markup",
        "markdown-it-py, 200 answers",
        "markdown-it-py",
        "from markdown_it import MarkdownIt; parser = MarkdownIt('commonmark')",
        ANSWERS,
        "[parser.parse(answer) for answer in answers]",
    ),
    Candidate(
        "markup",
        "html5lib, 200 answers",
        "html5lib",
        "import html5lib",
        ANSWERS,
        "[html5lib.parse(answer) for answer in answers]",
    ),
    *(
        Candidate("dependencies", name, name, f"import {module}")
        for name, module in (
            ("ada-url", "ada_url"),
            ("click", "click"),
            ("genai-prices", "genai_prices"),
            ("httpx", "httpx"),
            ("jinja2", "jinja2"),
            ("jsonschema", "jsonschema"),
            ("junit-xml", "junit_xml"),
            ("markdown-it-py", "markdown_it"),
            ("msgspec", "msgspec.json"),
            ("openai", "openai"),
            ("pydantic", "pydantic"),
            ("pyyaml", "yaml"),
            ("rich", "rich.progress"),
        )
    ),
)

CHILD = """
import json, resource, sys, time
parts, note = json.load(sys.stdin), ""
scope = {"note": ""}
marks = []
for code in parts:
    start = time.process_time()
    exec(code, scope)
    marks.append(time.process_time() - start)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 2**20)
print(json.dumps({"load": marks[0], "work": marks[2], "peak": peak, "note": scope["note"]}))
"""


def measured(candidate: Candidate) -> str:
    """One line: what, version, processor time to import and to work, peak memory of the process, installed size."""
    if candidate.package and not (installed := _installed(candidate.package)):
        return f"{candidate.part:13} {candidate.name}: {candidate.package} is not installed"
    code = json.dumps([candidate.load, candidate.data, candidate.work, candidate.after])
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input=code, capture_output=True, text=True, check=False, cwd=REPOSITORY
    )
    if done.returncode:
        return f"{candidate.part:13} {candidate.name}: {done.stderr.strip().splitlines()[-1]}"
    figures = json.loads(done.stdout)
    line = f"{candidate.part:13} {candidate.name}: import {1000 * figures['load']:.0f} ms"
    line += (
        f", work {1000 * figures['work']:,.0f} ms, peak {figures['peak']:.0f} MB" if candidate.work != "pass" else ""
    )
    line += f", {figures['note']}" if figures["note"] else ""
    return line + (f" ({installed})" if candidate.package else "")


def _installed(package: str) -> str:
    """Version and size on disk, without what it depends on; empty if it is not there."""
    try:
        found = distribution(package)
    except PackageNotFoundError:
        return ""
    paths = [Path(str(found.locate_file(file))) for file in found.files or ()]
    size = sum(path.stat().st_size for path in paths if path.is_file())
    return f"{package} {found.version}, {size / 2**20:.1f} MB"


def main() -> None:
    wanted = set(sys.argv[1:])
    for candidate in CANDIDATES:
        if not wanted or candidate.part in wanted:
            print(measured(candidate), flush=True)


if __name__ == "__main__":
    main()
