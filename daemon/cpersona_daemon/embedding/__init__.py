"""Text to vectors behind one small interface: builtin, http, none."""
