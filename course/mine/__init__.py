"""What stands around a student's functions in the real model, and counts how often they are called."""
