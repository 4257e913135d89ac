"""Families of workers who err together: found from the answers or given, and what they count."""

from goldspan.aggregation.families.counting import Families
from goldspan.aggregation.families.finding import find_families
from goldspan.aggregation.families.giving import (
    as_copies,
    check_families,
    check_known,
    families_for,
    families_told_by,
    given_families,
    names_nobody,
    read_families,
    told_families,
)

__all__ = [
    "Families",
    "as_copies",
    "check_families",
    "check_known",
    "families_for",
    "families_told_by",
    "find_families",
    "given_families",
    "names_nobody",
    "read_families",
    "told_families",
]
