"""What carries the frames between the sites, and the agent that waits at their ends."""
