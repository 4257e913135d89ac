"""The tagger's inner loops, compiled by Numba: arrays in, arrays written, no Python object."""
