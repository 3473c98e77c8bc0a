"""Quality: agreement, snapshots and the training loop."""
