"""The comparison of several agents as text, Markdown and JSON; as a page it is `gate.reports.html.lineup`."""
