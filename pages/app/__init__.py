"""What every page shares: caches, sign-in, background work, text helpers, keys, the launch."""
