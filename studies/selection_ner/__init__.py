"""What to label first: rules of selection on CoNLL-2003 at equal budgets of tokens."""
