"""The REST API below /api/v1: one module per thing it speaks of."""
