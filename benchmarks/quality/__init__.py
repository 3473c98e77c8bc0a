"""How well it answers: figures on questions that no training saw."""
