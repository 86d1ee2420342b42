"""Chaos: kill, stop and cut everything at random while jobs run, and hold the queue to what the jobs wrote down."""
