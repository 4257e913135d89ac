"""Bayesian sequence combination and the Dawid–Skene family (docs/math.md, sections 3, 4, 7)."""
