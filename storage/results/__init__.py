"""What systems and people said of questions: predictions, labels, answer sets, evaluations."""
