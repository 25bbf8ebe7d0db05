"""Job orders: which runnable job of a query gets the slot. One file per rule."""
