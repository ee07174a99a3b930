"""Accepts parcels, picks a carrier, follows them home."""
