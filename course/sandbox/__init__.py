"""How code that is not trusted runs: limits, and a filter of what it may ask of the system."""
