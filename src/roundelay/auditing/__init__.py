"""The audit: what leaks, to whom, attack by attack, held against the truth and against a guess."""

from roundelay.auditing.audit import Audit, audit, audit_transcript
from roundelay.auditing.everyone import AuditOfAll, audit_all
from roundelay.auditing.leak import Leak

__all__ = ["Audit", "AuditOfAll", "Leak", "audit", "audit_all", "audit_transcript"]
