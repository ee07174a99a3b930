"""What is remembered. Nothing in this package knows about chat, models or Textual."""
