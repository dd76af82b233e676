"""Print what becomes of every hostile program, bare and in every tier, for every kind of user; status 1 on a breach.

``python -m tests.sandbox.hostile [PROGRAM ...] [--kind KIND] [--tier TIER] [--no-bare] [--json]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sandbox import Sandbox, SandboxUnavailable, Tier
from tests.sandbox.hostile.bare import bare_breaches, clear, must_breach
from tests.sandbox.hostile.jailed import run_jailed
from tests.sandbox.hostile.table import Row, load_table
from tests.sandbox.hostile.world import new_world
from tests.sandbox.ordinary_user import run_as

TIERS = [Tier.FULL, Tier.JAIL, Tier.CONFINED]
ORDINARY_TIMEOUT_S = 1800.0

# One program in one column: (what became of it, what is wrong with that, whether that was known to be so)
Cell = tuple[str, list[str], bool]


def main() -> int:
    arguments = _parse()
    rows = [row for name, row in load_table().items() if _wanted(row, name, arguments)]
    user = "root" if os.geteuid() == 0 else "user"
    columns: dict[str, dict[str, Cell]] = {}
    if not arguments.no_bare:
        columns[f"bare, {user}"] = dict(_bare(rows))
    for tier in arguments.tier or TIERS:
        cells = asyncio.run(_in_tier(rows, tier))
        if cells:
            columns[f"{tier}, {user}"] = cells
    if user == "root" and not arguments.no_ordinary:
        columns |= _as_ordinary_user(sys.argv[1:])
    if arguments.json:
        print(json.dumps(columns))
    else:
        _print(rows, columns)
    return int(any(cell[1] and not cell[2] for cells in columns.values() for cell in cells.values()))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sandbox.hostile", description=__doc__)
    parser.add_argument("programs", nargs="*", help="only these")
    parser.add_argument("--kind", help="only programs of this kind")
    parser.add_argument("--tier", action="append", type=Tier, choices=TIERS, help="only this tier (may be repeated)")
    parser.add_argument("--no-bare", action="store_true", help="leave the positive control out")
    parser.add_argument("--no-ordinary", action="store_true", help="as root: leave the ordinary user out")
    parser.add_argument("--json", action="store_true", help="the table as JSON: column to program to cell")
    return parser.parse_args()


def _wanted(row: Row, name: str, arguments: argparse.Namespace) -> bool:
    return (not arguments.programs or name in arguments.programs) and arguments.kind in (None, row.kind)


def _bare(rows: list[Row]) -> Iterator[tuple[str, Cell]]:
    """The control: here it would be wrong if a program did not get its way."""
    for row in rows:
        if row.control == "none":
            yield row.name, ("", [], False)
            continue
        with _folder() as folder, new_world(Path(folder)) as world:
            breaches = bare_breaches(row, world)
            clear(world.scratch)
        missing = ["the control did not breach"] if must_breach(row) and not breaches else []
        yield row.name, ("breached" if breaches else "held", missing, False)


async def _in_tier(rows: list[Row], tier: Tier) -> dict[str, Cell]:
    """Every program in one tier; nothing where this machine cannot have the tier."""
    cells: dict[str, Cell] = {}
    try:
        async with Sandbox(concurrency=2, tier=tier, minimum_tier=Tier.CONFINED) as sandbox:
            for row in rows:
                with _folder() as folder, new_world(Path(folder)) as world:
                    verdict, problems = await run_jailed(row, world, sandbox)
                cells[row.name] = (str(verdict.status), problems, bool(row.not_stopped_in(tier)))
    except SandboxUnavailable as error:
        print(f"tier {tier} cannot be had here: {error}", file=sys.stderr)
    return cells


def _as_ordinary_user(argv: list[str]) -> dict[str, dict[str, Cell]]:
    with tempfile.TemporaryDirectory(prefix="vpo-view-") as view:
        Path(view).chmod(0o755)
        module = ["-m", "tests.sandbox.hostile", "--json", *argv]
        done = run_as("ordinary", Path(view), module, timeout=ORDINARY_TIMEOUT_S)
    sys.stderr.write(done.stderr)
    columns: dict[str, dict[str, Cell]] = json.loads(done.stdout)
    return columns


def _print(rows: list[Row], columns: dict[str, dict[str, Cell]]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = Table("kind", "program", *columns, title="hostile programs")
    kind = ""
    for row in rows:
        cells = [_shown(cells.get(row.name, ("", [], False)), "bare" in name) for name, cells in columns.items()]
        table.add_row("" if row.kind == kind else row.kind, row.name, *cells)
        kind = row.kind
    console.print(table)
    for name, cells in columns.items():
        wrong = {program: cell[1] for program, cell in cells.items() if cell[1]}
        unknown = [program for program in wrong if not cells[program][2]]
        word = "controls that held" if "bare" in name else "breaches"
        console.print(f"{name}: {len(cells)} programs, {len(unknown)} {word}, {len(wrong) - len(unknown)} known")
        for program, problems in wrong.items():
            console.print(f"  {program}: {'; '.join(problems)}", markup=False, highlight=False)


def _shown(cell: Cell, control: bool) -> Text:
    ending, problems, known = cell
    if problems:
        return Text("known" if known else "BREACH" if not control else "held", style="yellow" if known else "bold red")
    return Text(ending, style="dim" if control or not ending else "green")


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="vpo-hostile-")


if __name__ == "__main__":
    sys.exit(main())
