"""Evaluates a system on questions: the plan, the run, its folder, the report, and the judges of interpretations."""
