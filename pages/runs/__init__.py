"""What Explore is made of: options, the runner, the live view, the trace, the result and its labels."""
