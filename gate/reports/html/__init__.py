"""Pages for people who want to look around: the report, and what every page of the gate shares.

`page` makes a page of one file under a policy that lets nothing be loaded; `plots` draws. A page of one's own is a
template in ``templates/`` that extends ``base.html``, and a style sheet that uses the names of ``tokens.css`` alone.
"""

from gate.reports.html.report import render

__all__ = ["render"]
