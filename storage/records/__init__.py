"""The frozen, plain records that the store takes and returns, and the checks of its input."""
