"""Who may do what: people, passwords, sessions, permissions, the store as a session sees it, and the log."""
