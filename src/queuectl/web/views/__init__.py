"""What pages draw, worked out beforehand: pure functions from what was read to where each thing stands."""
