"""The dashboard: one module per page, which reads what its template shows."""
