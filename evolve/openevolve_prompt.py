"""A task's own prompt templates, in OpenEvolve's format: a folder with ``diff_user.txt``, ``system_message.txt``, ...

1. A template is text with ``{NAME}`` in it; the names are OpenEvolve's (``_NAMES``) and the keys of
   ``prompt.template_variations``, in whose place one of their texts is put, drawn per request. ``{{`` is a brace.
   Nothing of a template is executed: OpenEvolve formats it as a Python format string, which can reach into objects.
2. A request whose form of edit has no template here is worded as every other task's.
3. Programs and artifacts share the room that the search's bound on prompts leaves; OpenEvolve has no such bound.
4. Where several answers are asked for in one reply, how to mark them is said after the template, and so is the form of
   an answer for a program of several files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from evolve.chain import ChainFormat
from evolve.chat import Budget, file_instruction
from evolve.openevolve_task import COMBINED, OpenEvolveTask
from evolve.prompts import PromptContext, PromptError, ShownProgram
from evolve.shown import bare_program, clip, fence
from evolve.strict import unknown_key

_USER = {"diff": "diff_user", "whole": "full_rewrite_user"}
_NAMES: dict[str, frozenset[str]] = {
    name: frozenset(names.split())
    for name, names in {
        "diff_user": "metrics fitness_score feature_coords feature_dimensions improvement_areas evolution_history "
        "current_program language artifacts",
        "evolution_history": "previous_attempts top_programs inspirations_section",
        "previous_attempt": "attempt_number changes performance outcome",
        "top_program": "program_number score language program_snippet key_features",
        "inspirations_section": "inspiration_programs",
        "inspiration_program": "program_number score program_type language program_snippet unique_features",
        "system_message": "",
    }.items()
}
_NAMES["full_rewrite_user"] = _NAMES["diff_user"]
_DEFAULTS = {
    "evolution_history": "## Previous Attempts\n\n{previous_attempts}\n\n"
    "## Top Performing Programs\n\n{top_programs}\n\n{inspirations_section}",
    "previous_attempt": "### Attempt {attempt_number}\n- Changes:\n```diff\n{changes}\n```\n- Score: {performance}\n"
    "- Outcome: {outcome}",
    "top_program": "### Program {program_number} (Score: {score})\n```{language}\n{program_snippet}\n```",
    "inspirations_section": "## Inspiration Programs\n\n{inspiration_programs}",
    "inspiration_program": "### Inspiration {program_number} (Score: {score})\n```{language}\n{program_snippet}\n```",
}
_PLACE = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Templates:
    """texts: templates by name. variations: by placeholder, the texts of which one takes its place."""

    texts: Mapping[str, str]
    system: str
    variations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stochastic: bool = True
    features: tuple[str, ...] = ()
    top: int = 3
    simplify_above: int | None = None
    artifact_chars: int = 20 * 1024

    def serves(self, edit: str) -> bool:
        """Whether there is a template for this form of edit."""
        return _USER[edit] in self.texts


def read_templates(task: OpenEvolveTask) -> Templates | None:
    """The templates in the task's ``prompt.template_dir``; ``None`` without any.

    Raises ``ValueError`` naming the template and the placeholder that OpenEvolve does not fill in.
    """
    prompt = task.config.prompt
    texts = dict(_templates(task))
    if not texts:
        return None
    variations = {key: given for key, given in prompt.template_variations.items() if given}
    for name, text in texts.items():
        allowed = _NAMES[name] | (variations.keys() if name in _USER.values() else set())
        for found in _PLACE.finditer(text):
            if found[1] is not None and found[1] not in allowed:
                raise ValueError(f"template {name}.txt: {unknown_key(found[1], allowed)}")
    message = prompt.system_message or "system_message"
    return Templates(
        texts=texts,
        system=texts.get(message, task.statement),
        variations=variations,
        stochastic=prompt.use_template_stochasticity,
        features=task.config.database.feature_dimensions or (),
        top=3 if prompt.num_top_programs is None else prompt.num_top_programs,
        simplify_above=prompt.suggest_simplification_after_chars,
        artifact_chars=prompt.max_artifact_bytes,
    )


def _templates(task: OpenEvolveTask) -> Iterator[tuple[str, str]]:
    folder = task.template_folder
    for name in _NAMES if folder else ():
        if (text := task.files.get(f"{folder}/{name}.txt")) is not None:
            yield name, text


def render(
    templates: Templates, context: PromptContext, chain: ChainFormat, rng: np.random.Generator, *, budget: Budget
) -> list[dict[str, str]]:
    """The messages that ask for an edit of ``context.parent``. rng: draws the variations.

    Raises :class:`evolve.prompts.PromptError` for a context without a parent.
    """
    if context.parent is None:
        raise PromptError("OpenEvolve's templates need a program to improve")
    text = templates.texts[_USER[context.edit]]
    for key, variants in sorted(templates.variations.items()):
        if f"{{{key}}}" in text:
            chosen = variants[int(rng.integers(len(variants)))] if templates.stochastic else variants[0]
            text = text.replace(f"{{{key}}}", chosen.replace("{", "{{").replace("}", "}}"))
    user = _filled(text, _values(templates, context, context.parent, budget))
    if context.several_files:
        user += f"\n\n{file_instruction(context)}"
    if context.m > 1:
        user += f"\n\nGive {context.m} different answers, each between {chain.open} and {chain.close}."
    return [{"role": "system", "content": templates.system}, {"role": "user", "content": user}]


def _filled(template: str, values: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        return values[found[1]] if found[1] is not None else found[0][0]

    return _PLACE.sub(value, template)


def _values(templates: Templates, context: PromptContext, parent: ShownProgram, budget: Budget) -> dict[str, str]:
    features = {name: parent.metrics[name] for name in templates.features if name in parent.metrics}
    return {
        "metrics": "\n".join(f"- {name}: {value:.4f}" for name, value in parent.metrics.items()),
        "fitness_score": f"{_score(parent):.4f}",
        "feature_coords": ", ".join(f"{name}={value:.2f}" for name, value in features.items()),
        "feature_dimensions": ", ".join(templates.features) or "None",
        "improvement_areas": "\n".join(f"- {area}" for area in _areas(templates, context, parent)),
        "evolution_history": _history(templates, context, budget),
        "current_program": bare_program(parent.source, budget.parent),
        "language": context.language,
        "artifacts": _artifacts(templates, parent, budget),
    }


def _score(program: ShownProgram) -> float:
    """What OpenEvolve calls fitness: ``combined_score`` as the evaluator gave it."""
    return program.metrics.get(COMBINED, program.scalar)


def _areas(templates: Templates, context: PromptContext, parent: ShownProgram) -> Iterator[str]:
    if context.history:
        last = context.history[-1]
        word = "improved" if last.after > last.before else "declined" if last.after < last.before else "unchanged"
        yield f"Fitness {word}: {last.before:.4f} → {last.after:.4f}"
    if templates.simplify_above is not None and len(parent.source) > templates.simplify_above:
        yield f"Consider simplifying: the program has more than {templates.simplify_above} characters"
    if context.focus:
        yield f"Mend first: {', '.join(context.focus)}"
    yield "Focus on improving the fitness score while keeping solutions diverse"


def _history(templates: Templates, context: PromptContext, budget: Budget) -> str:
    texts = {**_DEFAULTS, **templates.texts}
    share = max(20, budget.history // max(1, len(context.history)))
    attempts = [
        _filled(
            texts["previous_attempt"],
            {
                "attempt_number": str(number),
                "changes": clip(step.diff, share),
                "performance": f"{step.after:.4f}",
                "outcome": f"from {step.before:.4f}",
            },
        )
        for number, step in enumerate(context.history, 1)
    ]
    shown = [*([context.mate] if context.mate else []), *context.inspirations]
    share = max(20, budget.inspirations // max(1, len(shown)))
    top = [_program(texts["top_program"], n, p, context, share) for n, p in enumerate(shown[: templates.top], 1)]
    rest = [
        _program(texts["inspiration_program"], n, p, context, share) for n, p in enumerate(shown[templates.top :], 1)
    ]
    section = _filled(texts["inspirations_section"], {"inspiration_programs": "\n\n".join(rest)}) if rest else ""
    values = {
        "previous_attempts": "\n\n".join(reversed(attempts)),
        "top_programs": "\n\n".join(top),
        "inspirations_section": section,
    }
    return _filled(texts["evolution_history"], values)


def _program(template: str, number: int, program: ShownProgram, context: PromptContext, share: int) -> str:
    named = ", ".join(f"{name} {value:.4f}" for name, value in program.metrics.items() if name != COMBINED)
    values = {
        "program_number": str(number),
        "score": f"{_score(program):.4f}",
        "program_type": "Diverse",
        "language": context.language,
        "program_snippet": bare_program(program.source, share),
        "key_features": named,
        "unique_features": named,
    }
    return _filled(template, values)


def _artifacts(templates: Templates, parent: ShownProgram, budget: Budget) -> str:
    if not parent.artifacts:
        return ""
    share = max(20, min(templates.artifact_chars, budget.artifacts // len(parent.artifacts)))
    parts = [f"### {json.dumps(name)[1:-1]}\n{fence(clip(text, share), '')}" for name, text in parent.artifacts.items()]
    return "## Last Execution Output\n\n" + "\n\n".join(parts)
