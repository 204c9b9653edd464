"""The verdict on one stage: builds the student's files, and runs the gate on them."""
