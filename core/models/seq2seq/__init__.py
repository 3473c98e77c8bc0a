"""Encoder-decoders: Fusion-in-Decoder, the small copying decoder, the authors' released formats, and the rewriter."""
