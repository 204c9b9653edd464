"""The commands of ./stage that belong to the course: one file per command."""
