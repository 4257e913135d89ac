"""Li and Liu 2015, redone: whom to hire within a budget, on simulated and real pools."""
