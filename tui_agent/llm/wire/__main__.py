"""A stand-in for Ollama: ``python -m tui_agent.llm.wire --script FILE.json [--port 0]``.

Prints one JSON line, ``{"url": "http://127.0.0.1:PORT", "debug_token": "…"}``, once it listens, and runs until it is
killed (or, with ``--with-stdin``, until its standard input ends). The file's format is in
:mod:`tui_agent.llm.wire.scriptfile`.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import threading
from pathlib import Path

import uvicorn

from .app import create_app
from .scriptfile import ScriptFileError, load_backend
from .serve import config_for, listen


def main(argv: list[str] | None = None) -> int:
    """Run the server; exit code 2 when the script or the port is of no use."""
    parser = argparse.ArgumentParser(prog="python -m tui_agent.llm.wire", description="A scripted Ollama server.")
    parser.add_argument("--script", type=Path, required=True, help="the JSON file with the answers")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--with-stdin", action="store_true", help="stop when standard input ends")
    options = parser.parse_args(argv)
    try:
        backend = load_backend(options.script)
        sock = listen(options.port)
    except (ScriptFileError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    token = secrets.token_urlsafe(16)
    server = uvicorn.Server(config_for(create_app(backend, debug_token=token), timeout_graceful_shutdown=0))

    def watch() -> None:
        while os.read(0, 4096):
            pass
        server.should_exit = True

    # The socket listens already, so a client that reads this line can connect.
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    print(json.dumps({"url": url, "debug_token": token}), flush=True)
    if options.with_stdin:
        threading.Thread(target=watch, daemon=True).start()
    server.run(sockets=[sock])
    return 0


if __name__ == "__main__":
    sys.exit(main())
