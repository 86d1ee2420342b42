"""Policy and transaction boundaries: every write a person or a worker can cause."""
