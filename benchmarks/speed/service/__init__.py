"""Many questions at once: a service, the app, and several machines."""
