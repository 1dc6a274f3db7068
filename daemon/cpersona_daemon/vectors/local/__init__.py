"""The engine of this machine: columns in memory, rows in checked files, exact search over both."""
