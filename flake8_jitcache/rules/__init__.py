"""What is reported, a module for each family of codes, with what only these ask of a file."""
