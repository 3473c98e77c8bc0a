"""What comes with Ambiscope to look at and to practise on; each lies in a database of its own, never among a person's own work."""
