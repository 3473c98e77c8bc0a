"""The names of the judges. core.evaluation.judge has the judges themselves, which load models."""

from __future__ import annotations

JUDGES = ("references", "reader", "language-model")
CHOICES = (*JUDGES, "none")  # of an evaluation
