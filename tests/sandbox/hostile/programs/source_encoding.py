def source():
    """A declared encoding in which the text means something else."""
    return "# -*- coding: utf-7 -*-\n# +AAo-import os+AAo-os._exit(0)\ndef attack(context): return 'wrong'\n"
