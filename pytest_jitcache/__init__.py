"""A pytest plugin that proves that a function is traced at most once per signature."""
