"""What the store takes and gives: frozen, plain records, and the checks of what may enter."""
