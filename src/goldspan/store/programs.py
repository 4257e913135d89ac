"""What a campaign keeps of programs beside its log: when they last used their tokens."""

from __future__ import annotations

from sqlalchemy import Connection, select

from goldspan.store.journal import Entry
from goldspan.store.schema import check_name, token_uses


def note_use(entry: Entry, token: str) -> None:
    """Keep that a token was used now."""
    check_name(token, "the id of a token")
    row = {"token": token, "time": entry.now}
    update = token_uses.update().where(token_uses.c.token == token)
    if not entry.connection.execute(update.values(time=entry.now)).rowcount:
        entry.connection.execute(token_uses.insert(), row)


def uses(connection: Connection) -> dict[str, int]:
    """Return when tokens were last used, by id, in milliseconds since 1970."""
    return {row.token: row.time for row in connection.execute(select(token_uses))}
