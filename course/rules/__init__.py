"""What counts as a student's own work, read from source files and object files."""
