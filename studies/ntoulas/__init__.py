"""Paper 003, section 4: as good a classifier from a fifth of the labels, on mail and on texts."""
