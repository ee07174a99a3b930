"""The process that holds the model: llama.cpp's own HTTP server on a loopback port.

``python -m tui_agent.llm.embedded.worker`` reads one JSON line from standard input (the fields of
:class:`~tui_agent.llm.embedded.llama.ServerConfig`), prints ``{"url": …}`` when the model is loaded or
``{"error": …}``, and ends when standard input ends. It is a process of its own because loading a model holds
Python's interpreter lock for seconds, because stopping is then certain, and because a crash in native code must not
take the HTTP API with it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .machine import die_with_parent


def parameters(config: dict[str, Any]) -> Any:
    """llama.cpp's parameters for a config."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = config["model"]
    params.n_ctx = config["num_ctx"]
    # A prompt is read in batches, and a client that leaves is noticed between two of them.
    params.n_batch = params.n_ubatch = config["batch"]
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = config["threads"]
    if config["gpu_layers"] is not None:
        params.n_gpu_layers = config["gpu_layers"]
    params.use_jinja = True
    params.cache_prompt = True
    params.cache_ram_mib = config["cache_ram_mib"]
    params.slot_save_path = config["slots"] + os.sep
    params.api_keys = [config["key"]]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    # The first request warms up just as well, and this one is not waited for.
    params.warmup = False
    params.verbosity = 1  # errors only: prompts must not end up in a log
    return params


def main() -> int:
    """Serve until standard input ends."""
    die_with_parent()
    config = json.loads(sys.stdin.readline())
    try:
        import xllamacpp

        server = xllamacpp.Server(parameters(config))
    except ImportError as error:
        print(json.dumps({"error": f"xllamacpp cannot be loaded: {error}"}), flush=True)
        return 1
    except RuntimeError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    print(json.dumps({"url": server.listening_address}), flush=True)
    sys.stdin.read()
    # Taking the server apart waits for running requests; ending the process does not.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
