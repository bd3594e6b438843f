"""Pages for exploring results: the report, and the parts that all pages share.

`page` makes a page of one file with a policy that blocks all loading; `plots` draws. A new page is a template in
``templates/`` that extends ``base.html``, with a style sheet that uses only the names of ``tokens.css``.
"""

from gate.reports.html.report import render

__all__ = ["render"]
