"""Named checks of a database, and their repairs."""
