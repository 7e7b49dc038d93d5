"""The searches for the lap that the token goes round."""
