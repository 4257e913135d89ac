"""Where workers come from: links of one's own, or a crowd from outside."""
