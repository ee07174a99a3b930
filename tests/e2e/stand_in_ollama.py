"""A stand-in for the ``ollama`` program: ``ollama serve`` runs the wire app at ``OLLAMA_HOST``, as the real one does.

``STAND_IN_SCRIPT`` names the script file of the server. Its process id goes to the file ``pid`` beside that script.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import uvicorn

from tui_agent.llm.wire.app import create_app
from tui_agent.llm.wire.scriptfile import load_backend
from tui_agent.llm.wire.serve import config_for, listen


def main() -> int:
    if sys.argv[1:] != ["serve"]:
        print("ollama version is 0.33.0")
        return 0
    script = Path(os.environ["STAND_IN_SCRIPT"])
    host, _, port = os.environ["OLLAMA_HOST"].rpartition(":")
    print(f"Listening on {host}:{port} (version 0.33.0)", flush=True)
    script.with_name("pid").write_text(str(os.getpid()))
    server = uvicorn.Server(config_for(create_app(load_backend(script)), timeout_graceful_shutdown=0))
    server.run(sockets=[listen(int(port), host)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
