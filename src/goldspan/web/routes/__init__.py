"""Routes: they read a request, call a plain class, and answer. No decision is made in them."""
