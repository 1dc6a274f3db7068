"""Files of notes as memories: which files of a directory, what is in them, under which ids.

Only `import` loads it. Everything here is pure but for reading files.
"""
