"""Talking to the model server. Nothing in this package knows about memory."""
