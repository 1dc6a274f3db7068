"""The daemon's own life: opening, serving, owning its place, leaving."""
