"""What flake8 loads."""
