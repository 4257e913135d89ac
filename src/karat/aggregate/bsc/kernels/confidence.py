from karat.chains.kernels.confidence import *  # noqa: F403 - until all import the new place
