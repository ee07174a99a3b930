"""A session on a scripted model server, as in the agent's tests, and a look into every file there is."""

from __future__ import annotations

from tests.agent.conftest import desk, open_desk, server

__all__ = ["desk", "open_desk", "server"]
