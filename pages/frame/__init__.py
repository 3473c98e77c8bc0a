"""What surrounds every page: name, version, glossary and shortcuts."""
