"""Several machines: work spread over the actors of a Ray cluster.  Ray is imported only where `--ray` is given."""
