"""Projects, guidelines, items, queue, leases, drafts, submissions and reviews."""
