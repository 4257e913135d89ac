"""Who is who, and what nobody may do: secrets, links, sessions, passwords, limits, headers."""
