"""Code that runs inside the jail. It is read here, compiled once, and sent in; it is never imported from a file there.

It may use the standard library only, and little of that: every import costs each jail milliseconds.
"""
