"""The files of weights: written, read, packed, and the digests that predictions store."""
