"""The choices that make a method of the update."""
