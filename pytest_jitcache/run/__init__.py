"""`jitcache`: watch any program, and read what was seen again. What it records is what a suite of tests records."""
