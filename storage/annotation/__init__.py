"""Projects, guidelines, items, queue, leases, drafts, submissions, reviews and qualification."""
