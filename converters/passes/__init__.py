"""Graph passes, one a file; order.py lists them in the order in which they run."""
