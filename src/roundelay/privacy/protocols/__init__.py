"""What the messages of other federated protocols tell of each site, by attacks that are derived and measured."""

from roundelay.privacy.protocols import published as published
from roundelay.privacy.protocols.attacks import (
    Learned as Learned,
    SiteAttack as SiteAttack,
)
from roundelay.privacy.protocols.audit import (
    ProtocolAudit as ProtocolAudit,
    audit_protocol as audit_protocol,
)
from roundelay.privacy.protocols.recorded import (
    FederatedProtocol as FederatedProtocol,
    RecordedMessages as RecordedMessages,
    load_messages as load_messages,
    save_messages as save_messages,
)
