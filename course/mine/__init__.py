"""Runs a student's functions in the real model, and counts their calls."""
