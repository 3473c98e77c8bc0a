"""Quality: agreement, snapshots and retraining."""
