"""The grade of one repository: reads what was handed in, compiles it, asks the judge, writes a report."""
