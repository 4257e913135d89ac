"""Alembic's environment and the steps from version to version."""
