"""Work that goes on while people look elsewhere: a thread of its own, its progress, and how it is stopped."""
