"""The catalogue: programs that are wrong in ways people are wrong in, and right ones."""
