"""What tells people where they are: name and version, words and keys, and the tour of a first visit."""
