"""What Annotate is made of: the forms, the bar below them, search, suggestions, and the state of a tab."""
