"""The audit: what leaks, to whom, attack by attack, held against the truth and against a guess."""

from roundelay.privacy.audit.audit import Audit, AuditOfAll, audit, audit_all, audit_transcript
from roundelay.privacy.audit.leaks import Leak

__all__ = ["Audit", "AuditOfAll", "Leak", "audit", "audit_all", "audit_transcript"]
