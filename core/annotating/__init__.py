"""The rules of annotation without user interface and database: checks, answer groups of validation, the state of each form."""
