"""How time and memory grow with the size of a crowd and of a pool, on this machine and on many."""
