"""A flake8 plugin that finds jitted functions whose lifetime is too short."""
