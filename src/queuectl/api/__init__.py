"""The Python face: `Queue` and its `Job`s. What they do is in actions/ and runtime/, as for the command line."""
