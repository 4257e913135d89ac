"""Bayesian sequence combination and the Dawid-Skene family: one engine (MATH sections 3, 4, 7)."""
