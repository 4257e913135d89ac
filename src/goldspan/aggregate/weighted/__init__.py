"""Votes with weights: of workers, or of single answers."""
