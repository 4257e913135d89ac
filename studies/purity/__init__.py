"""All methods over all crowds: how right, how sure, how far from the answers, at what cost."""
