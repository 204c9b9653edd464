"""One repository's grade: read what was handed in, compile it, ask the judge, report."""
