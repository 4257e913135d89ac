"""Who is asked about what, compiled by Numba: one pass over the items in their order."""
