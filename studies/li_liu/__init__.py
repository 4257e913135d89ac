"""Paper 002, redone: whom to hire within a budget, on simulated and real pools."""
