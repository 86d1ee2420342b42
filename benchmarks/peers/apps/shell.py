"""The job of every Python peer: one shell command, as its users would write it."""

import subprocess


def run_shell(command: str) -> None:
    """Run a command; a failure is an exception, so that the peer sees it."""
    subprocess.run(command, shell=True, check=True)
