"""Where models run: the device, memory that is too small or handed back, and whose turn it is."""
