"""What several of the packages here use."""
