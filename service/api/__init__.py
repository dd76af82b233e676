"""HTTP routes. Each is thin: it reads the request, calls one query or action, and shapes the answer."""
