"""Everything of the operating system: processes, output, liveness, wake-up, files. Knows nothing of jobs."""
