"""All SQL: connections and transactions, schema and migrations, and the statements on each table."""
