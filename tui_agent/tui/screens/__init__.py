"""Screens: chat, inspector, help and the pickers."""
