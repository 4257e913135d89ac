from karat.chains.kernels.logarithms import *  # noqa: F403 - until all import the new place
