"""Output of systems and contributions of people: predictions, labels, answer sets, evaluations."""
