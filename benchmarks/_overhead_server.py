"""A model server that answers at once, for ``overhead.py``: run as a process of its own, prints its port."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tui_agent.llm.tokens import TokenEstimator

MODEL = "instant:1b"
_SHOW = {
    "details": {"family": "qwen2", "parameter_size": "1.5B", "quantization_level": "Q4_K_M"},
    "model_info": {"general.architecture": "qwen2", "qwen2.context_length": 131_072},
    "capabilities": ["completion", "tools"],
    "template": "",
}


def _reply(path: str, body: dict[str, Any], counter: TokenEstimator) -> tuple[str, str]:
    row = {"name": MODEL, "model": MODEL, "digest": "0" * 64, "size": 986_000_000, "details": _SHOW["details"]}
    if path == "/api/chat":
        messages = body.get("messages", [])
        count = counter.estimate_messages(messages, body.get("tools", ())) if messages else 0
        end = {
            "model": MODEL, "done": True, "done_reason": "stop", "message": {"role": "assistant", "content": ""},
            "total_duration": 10**6, "load_duration": 1, "prompt_eval_count": count, "prompt_eval_duration": 10**6,
            "eval_count": 2, "eval_duration": 10**5,
        }  # fmt: skip
        said = {"model": MODEL, "done": False, "message": {"role": "assistant", "content": "It is as noted."}}
        return "application/x-ndjson", f"{json.dumps(said)}\n{json.dumps(end)}\n"
    replies: dict[str, Any] = {
        "/api/version": {"version": "0.13.0"},
        "/api/tags": {"models": [row]},
        "/api/ps": {"models": [{**row, "size_vram": 0}]},
        "/api/show": _SHOW,
    }
    return "application/json", json.dumps(replies.get(path, {}))


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counter: TokenEstimator) -> None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = next((int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0)
        body = json.loads(await reader.readexactly(length)) if length else {}
        kind, text = _reply(head.split(" ")[1], body, counter)
        data = text.encode()
        writer.write(
            f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n"
            "connection: close\r\n\r\n".encode()
            + data
        )
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _main() -> None:
    counter = TokenEstimator(MODEL)
    server = await asyncio.start_server(lambda r, w: _serve(r, w, counter), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
