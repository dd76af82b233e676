"""The hostile suite: programs that try to break out of the sandbox, or to pass without being right.

``table.yaml`` says of each program in ``programs/`` what may become of it; ``python -m tests.sandbox.hostile`` prints
what does, in every tier and for every kind of user that this machine has. Everything is observed from outside.
"""
