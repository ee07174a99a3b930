"""Widgets: transcript, composer, panes and status line."""
