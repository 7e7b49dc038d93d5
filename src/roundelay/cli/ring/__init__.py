"""`roundelay ring`: the commands by which sites set up a ring."""
