"""A real crowd's answers replayed as a campaign: F1 against money, fixed and adaptive."""
