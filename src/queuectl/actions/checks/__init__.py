"""Checks of `queuectl doctor`: each looks at one thing of a store or of this host, and says what it found."""
