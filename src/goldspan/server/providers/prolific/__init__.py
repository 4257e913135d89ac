"""Prolific: participants, submissions, completion codes, webhooks and bonuses."""
