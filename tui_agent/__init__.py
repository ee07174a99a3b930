"""tui_agent: a terminal chat with a local model whose memory you can see, trust and steer."""

__version__ = "0.1.0"
