"""Facts about this installation: its version, the distributions in its environment, and whether each system's requirements are
met."""
