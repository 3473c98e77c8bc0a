"""People, passwords, sessions, throttle, and who may call which store method."""
