"""Projects: their settings, items, linked predictions and qualification."""
