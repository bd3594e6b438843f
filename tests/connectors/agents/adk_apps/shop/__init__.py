"""An app as `adk api_server` looks for it."""

from . import agent as agent
