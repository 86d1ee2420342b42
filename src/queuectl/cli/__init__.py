"""The command line: arguments and text, one file per command or group. Nothing else."""
