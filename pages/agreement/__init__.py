"""What Quality is made of: tables of agreement, and the training loop."""
