"""Analyses of the stored work: agreement, judges compared with people, answers for a project, and retraining."""
