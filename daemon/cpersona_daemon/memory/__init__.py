"""Storing, editing and deleting memories, episodes and profiles."""
