"""What a site brings: its rows, their sums under masks, its function, and the model in the end."""
