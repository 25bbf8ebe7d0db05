"""Query orders: which query of a leaf of the pool tree is next. One file per rule."""
