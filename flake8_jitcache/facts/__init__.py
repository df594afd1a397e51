"""What holds of a file: its scopes and names, what is jitted in it, what becomes of that, and how often it runs."""
