"""Everything that touches private names of JAX."""
