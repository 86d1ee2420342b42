"""Names of variables that our processes and their commands carry."""

CLAIM_VARIABLE = "QUEUECTL_CLAIM"
WORKER_VARIABLE = "QUEUECTL_WORKER"
RESTARTED_VARIABLE = "QUEUECTL_RESTARTED"
