"""Encoders: BERT and MPNet without transformers, word pieces, trained retrievers, and base models from PyPI packages."""
