from karat.chains.kernels.posterior import *  # noqa: F403 - until all import the new place
