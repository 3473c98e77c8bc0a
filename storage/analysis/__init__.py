"""What the stored work says: agreement, judges against people, answers for a project, and the training loop."""
