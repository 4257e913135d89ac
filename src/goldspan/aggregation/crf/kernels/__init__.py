"""The inner loops over answers, compiled by Numba; shapes and types stand in the docstrings."""
