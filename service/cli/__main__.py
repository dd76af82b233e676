"""``python -m service.cli``: the ``vpo`` command without its script."""

from service.cli import main

main()
