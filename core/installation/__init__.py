"""What this installation is and has: its version, the distributions in its environment, and whether each system's requirements are met."""
