"""The commands of ./stage that belong to the course: a file per command."""
