"""What the sites agree on before a run: who they are, the plan, and the files in which both stand."""
