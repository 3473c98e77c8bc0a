"""What Corpora is made of: uploads and the building of a corpus."""
