"""The audit: what leaks, to whom, attack by attack, held against the truth and against a guess."""

from roundelay.privacy.audit.audit import (
    Audit as Audit,
    AuditOfAll as AuditOfAll,
    audit as audit,
    audit_all as audit_all,
    audit_transcript as audit_transcript,
)
from roundelay.privacy.audit.leaks import (
    Leak as Leak,
)
