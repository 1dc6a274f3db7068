"""Copying one agent's memory to another agent, or moving it there."""
