"""Families of workers who err together: found from the answers or given, and what they count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.aggregation.families.counting import Families as Families
    from goldspan.aggregation.families.finding import find_families as find_families
    from goldspan.aggregation.families.giving import as_copies as as_copies
    from goldspan.aggregation.families.giving import check_families as check_families
    from goldspan.aggregation.families.giving import check_known as check_known
    from goldspan.aggregation.families.giving import families_for as families_for
    from goldspan.aggregation.families.giving import families_told_by as families_told_by
    from goldspan.aggregation.families.giving import given_families as given_families
    from goldspan.aggregation.families.giving import names_nobody as names_nobody
    from goldspan.aggregation.families.giving import read_families as read_families
    from goldspan.aggregation.families.giving import told_families as told_families

__getattr__, __dir__, __all__ = lazy(__name__)
