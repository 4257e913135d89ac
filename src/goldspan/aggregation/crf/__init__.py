"""CRFs that learn from a crowd: CRF-CONC, CRF-MA, MultiCRF (docs/math.md, section 5)."""
