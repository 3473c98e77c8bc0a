"""The signed-in user, the store of this session, preferences and cached resources."""
