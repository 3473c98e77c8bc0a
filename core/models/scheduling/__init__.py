"""Where and when models run: device, memory, turns of threads."""
