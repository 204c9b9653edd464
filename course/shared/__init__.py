"""Modules that several packages of the course use."""
