"""Consensus of numbers: mean and median."""
