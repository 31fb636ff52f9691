"""Pure rules of the session cache: keys, eviction, the event tree, context windows."""
