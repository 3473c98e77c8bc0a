"""Finding, packing and verifying the weights of models."""
