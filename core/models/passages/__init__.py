"""What ranks passages jointly: the scorers of tree decoding, and the network of the trained one."""
