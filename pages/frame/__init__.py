"""The frame of every page: name, version, glossary and shortcuts."""
