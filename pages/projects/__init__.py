"""What Manage is made of: projects, items, guidelines, people, progress."""
