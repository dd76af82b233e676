"""Options that several commands have: what begins a search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SeedOption = Annotated[list[int] | None, typer.Option(help="Seed; repeat it for more runs of each task. (default: 0)")]
SamplesOption = Annotated[
    int | None,
    typer.Option(min=1, help="Completions per request. (default: as few as give all models equal evaluations)"),
]
AnswersOption = Annotated[int, typer.Option(min=1, help="Answers per completion, for models without vpo.json.")]
LagOption = Annotated[int | None, typer.Option(min=1, help="Iterations of one run in flight at once. (default: 1)")]
TemperatureOption = Annotated[
    float | None, typer.Option(help="Sampling temperature. (default: that of an OpenEvolve task, else 1)")
]
EditOption = Annotated[
    str | None,
    typer.Option(help="whole (programs) or diff (SEARCH/REPLACE). (default: that of an OpenEvolve task, else whole)"),
]
ConfigOption = Annotated[Path | None, typer.Option(help="YAML file with any fields of the search configuration.")]
KeyOption = Annotated[
    str | None, typer.Option(help="Environment variable with the models' API key; its name ends in _API_KEY.")
]
NameOption = Annotated[str | None, typer.Option(help="Name of the search. (default: that of the task or suite)")]
