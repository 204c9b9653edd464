"""What a teacher does with a class: pull, grade, show, send."""
