"""The engine's inner loops, compiled by Numba: arrays in, arrays written, no Python object.

Shapes and types stand in the docstrings; the functions are as long as their loops.
"""
