"""A site from its first epoch to its model, and what its operator may see of it."""
