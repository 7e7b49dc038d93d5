"""What hides the agents' functions, and what does not."""
