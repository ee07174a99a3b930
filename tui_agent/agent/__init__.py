"""The loop that ties model and memory together; yields typed events and imports no UI."""
