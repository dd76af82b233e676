"""Python: the interpreter that is in every jail already; programs are compiled where they run."""

from sandbox.languages.language import Language

LANGUAGE = Language(
    name="python",
    title="Python",
    file="candidate.py",
    stub="import sys\n\ndata = sys.stdin.read()\n",
)
