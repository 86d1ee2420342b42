"""Peers: what people use today, each running the same commands as queuectl, through one driver."""
