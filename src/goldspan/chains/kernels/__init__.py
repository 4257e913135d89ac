"""Forward-backward, best paths and span posteriors, compiled by Numba."""
