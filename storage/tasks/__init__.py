"""The task: its rows, its slot of an item, what it holds, and the order of the queue."""
