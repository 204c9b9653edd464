"""Runs untrusted code with limits and with a filter for system calls."""
