"""What annotators do, without screen and database: checks, answer groups of the validation stage, the state of each form."""
