"""Health: the state of the installation."""
