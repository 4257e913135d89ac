"""How right labels are: items drawn to be checked by a person, and the certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.auditing.certificate import Audit as Audit
    from goldspan.auditing.certificate import audit as audit
    from goldspan.auditing.intervals import Estimate as Estimate
    from goldspan.auditing.plan import AuditPlan as AuditPlan
    from goldspan.auditing.plan import draw_audit as draw_audit

__getattr__, __dir__, __all__ = lazy(__name__)
