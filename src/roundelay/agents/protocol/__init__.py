"""What one member does with a baton, and why none is ever lost or taken twice: no link and no clock in here."""
