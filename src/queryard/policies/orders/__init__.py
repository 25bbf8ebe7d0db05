"""Query orders: whose turn it is in a leaf of the pool tree. One file a rule."""
