"""Compiled loops of this room."""
