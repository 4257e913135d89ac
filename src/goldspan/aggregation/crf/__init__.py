"""CRFs that learn from a crowd: CRF-CONC, CRF-MA, MultiCRF (paper 000; MATH section 5)."""
