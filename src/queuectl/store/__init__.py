"""All SQL: plain functions (tx, data) -> data, one module per table. Policy is in actions/."""
