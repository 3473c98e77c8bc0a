"""What several pages draw: markup, formatting, keyboard, glossary, style."""
