"""`python -m queuectl` is the same program as `queuectl`."""

from queuectl.cli.main import entry

if __name__ == "__main__":
    entry()
