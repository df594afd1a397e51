"""What jitted functions capture, and whether a warm one keeps a value that is another one now.

`reads` says what code reads, `snapshot` what was captured at one moment, `proof` whether the program in JAX's cache is the
one that JAX would make now, `words` what to tell the user.
"""
