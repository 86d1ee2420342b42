"""queuectl: a durable queue for shell commands."""

__version__ = "0.1.0"
