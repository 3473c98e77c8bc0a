"""What comes with Ambiscope to look at and to practise on, each in a database of its own, apart from a person's own work."""
