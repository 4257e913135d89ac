"""One file per format; see `crowd/registry.py` for what a format has."""
