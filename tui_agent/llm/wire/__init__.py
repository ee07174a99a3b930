"""The Ollama HTTP API as a small ASGI app over a pluggable backend."""
