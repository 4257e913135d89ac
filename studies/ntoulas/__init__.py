"""Ntoulas et al., section 4: as good a classifier from a fifth of the labels, mails and texts."""
