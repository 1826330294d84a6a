"""`edgekit demo`: the whole job on a generated clip."""
