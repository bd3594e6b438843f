"""Pictures of comments: Markdown as a code host shows it, drawn by the system's Chromium.

    python -m docs.tools.pictures FOLDER [FILE.md ...]

draws each file, or every golden comment, at the width of a telephone and of a desk, as ``FOLDER/NAME-390.png`` and
``FOLDER/NAME-830.png``. It needs the extra ``browser``, and a Chromium that is installed.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "reports"
WIDTHS = (390, 830)
NAMES = ("chromium", "chromium-browser", "google-chrome")
STYLE = """
body { margin: 0; padding: 16px; background: #fff; color: #1f2328; font: 14px/1.5 system-ui, "Noto Sans", sans-serif }
.box { border: 1px solid #d0d7de; border-radius: 6px; overflow: hidden }
.by { background: #f6f8fa; border-bottom: 1px solid #d0d7de; padding: 8px 16px; color: #59636e }
.by b { color: #1f2328 }
.text { padding: 16px; overflow-wrap: break-word }
h3 { font-size: 1.25em; margin: 0 0 16px; line-height: 1.25 }
p, table, pre, blockquote, details, ul { margin: 0 0 16px }
ul { padding-left: 2em }
code { background: #818b981f; border-radius: 6px; padding: .2em .4em; white-space: break-spaces }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 85% }
pre { background: #f6f8fa; border-radius: 6px; padding: 16px; overflow: auto; line-height: 1.45 }
pre code { background: none; padding: 0; font-size: 100%; white-space: pre }
table { border-collapse: collapse; display: block; width: max-content; max-width: 100%; overflow: auto }
th, td { border: 1px solid #d0d7de; padding: 6px 13px }
tr:nth-child(2n) td { background: #f6f8fa }
blockquote { border-left: .25em solid #d0d7de; padding: 0 1em; color: #59636e }
a { color: #0969da }
sub { font-size: 75%; color: #1f2328 }
.add { background: #dafbe1; color: #116329 }
.del { background: #ffebe9; color: #82071e }
.hunk { color: #8250df; font-weight: bold }
"""

CROSS = '<span style="color: #cf222e">✖</span>'
TICK = '<span style="color: #1a7f37">✔</span>'
"""Characters for fonts that have no picture of the sign."""


def page(markdown: str) -> str:
    """Return a page with the text as a comment."""
    made = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    made.add_render_rule("fence", _fence)
    body = made.render(markdown)
    body = body.replace("❌", CROSS).replace("✅", TICK)
    head = f"<!doctype html><meta charset='utf-8'><style>{STYLE}</style>"
    by = "<div class='by'><b>github-actions</b> commented</div>"
    return f"{head}<div class='box'>{by}<div class='text'>{body}</div></div>"


def _fence(_: object, tokens: list, at: int, *__: object) -> str:  # type: ignore[type-arg]
    """A fence; of a diff with its lines in colour."""
    from html import escape

    kinds = {"+": "add", "-": "del", "@": "hunk"} if tokens[at].info.strip() == "diff" else {}
    lines = tokens[at].content.rstrip("\n").split("\n")
    shown = (f'<span class="{kinds.get(line[:1], "")}">{escape(line)}</span>' for line in lines)
    return f"<pre><code>{'<br>'.join(shown)}</code></pre>\n"


def draw(folder: Path, texts: dict[str, str], *, opened: bool = False) -> list[Path]:
    """Draw each text at every width; ``opened``: with its folds open."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    found = next(filter(None, map(shutil.which, NAMES)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for name, text in texts.items():
            for width in WIDTHS:
                tab = browser.new_page(viewport={"width": width, "height": 400}, device_scale_factor=1.5)
                tab.set_content(page(text))
                if opened:
                    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
                path = folder / f"{name}-{width}.png"
                tab.screenshot(path=path, full_page=True)
                tab.close()
                drawn.append(path)
        browser.close()
    return drawn


def main(folder: str, *files: str) -> None:
    """Draw the files, or every golden comment."""
    paths = [Path(name) for name in files] or sorted(GOLDEN.glob("*.md"))
    for path in draw(Path(folder), {path.stem: path.read_text(encoding="utf-8") for path in paths}):
        print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
