"""One evolutionary run as ask/tell: pure, without I/O, clock or global randomness.

``tell`` only notes a result; the population takes it in when ``ask`` comes to an iteration that may see it. So what
iteration t sees is decided by t and the lag alone, however fast replies came and in whatever order they were read,
and a run that is rebuilt from its records goes on exactly as it would have gone on anyway.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from evolve.adaptation import Adaptation
from evolve.config import SearchConfig
from evolve.islands import STAGNANT, Islands, Migration
from evolve.ledger import Ended, Ledger, Spent
from evolve.lineage import Lineage
from evolve.manifest import Manifest
from evolve.notes import Notes
from evolve.operators import IMPROVE, OPERATORS
from evolve.program import Evaluation, IterationRecord, Program, Rejected, Reply, seed_program
from evolve.prompts import ShownChange
from evolve.randomness import generator
from evolve.reading import Candidates, known_as, read_reply
from evolve.request import Approach, Request, RequestBuilder
from evolve.selection import select_inspirations, select_mate, select_parent
from evolve.task import OpenEvolveTask, Task, TestsTask
from evolve.tokens import CountTokens


class NotReady(RuntimeError):  # noqa: N818 (a state, not a fault)
    """``ask`` was called while too many iterations are in flight, before ``begin``, or after the end."""


class Search:
    """The state of one run. Call ``begin`` (or ``restore``), then ``ask``, ``read`` and ``tell`` as often as wanted.

    seed: with equal replies and evaluations, equal seeds give equal runs.
    manifest: of the model's checkpoint, if it has one; decides prompt and chain format.
    count_tokens: of a text, by the model's tokenizer, for ``prompt_tokens``; ``None`` estimates.
    Raises ``ValueError`` where manifest and config cannot go together.
    """

    def __init__(
        self,
        task: Task,
        config: SearchConfig,
        *,
        seed: int,
        manifest: Manifest | None = None,
        count_tokens: CountTokens | None = None,
    ) -> None:
        self.task, self.config, self.seed = task, config, seed
        self._builder = builder = RequestBuilder(task, config, seed=seed, manifest=manifest, count_tokens=count_tokens)
        self._adaptation = Adaptation(
            config, seed=seed, operators=builder.operators, edits=builder.edits, splits=builder.splits
        )
        self._lineage = Lineage()
        self._notes = _make_notes(task)
        self._islands = Islands(config)
        self._asked = 0
        self._told = 0
        self._waiting: deque[IterationRecord] = deque()  # told, and not yet seen by the population
        self._migrations: dict[int, Migration] = {}
        self._ledger = Ledger(config)
        self._known: dict[str, int] = {}
        self._next_number = 0
        self._seed_program: Program | None = None
        self._best: Program | None = None
        self._first_solved: int | None = None

    @property
    def told(self) -> int:
        """The last iteration with a result; 0 before the first."""
        return self._told

    @property
    def best(self) -> Program | None:
        """The program with the highest task scalar so far; the earliest of equals."""
        return self._best

    @property
    def first_solved(self) -> int | None:
        """The iteration that first solved the task; 0: the seed program did."""
        return self._first_solved

    @property
    def solved(self) -> bool:
        return self._first_solved is not None

    @property
    def spent(self) -> Spent:
        """What the finished iterations have cost."""
        return self._ledger.spent

    @property
    def ended(self) -> Ended | None:
        """What ends the run, once something does; there may still be iterations in flight to be told."""
        return self._ledger.ended

    @property
    def finished(self) -> bool:
        """Whether the run needs no further iteration."""
        last = self._ledger.last_iteration
        return last is not None and self._told >= last

    @property
    def can_ask(self) -> bool:
        last = self._ledger.last_iteration
        open_end = last is None or self._asked < last
        return self._seed_program is not None and open_end and self._asked - self._told < self.config.lag

    def begin(self, evaluation: Evaluation) -> Program:
        """Start with the task's seed program as judged: program 0, on every island."""
        _reject_infrastructure([evaluation])
        program = seed_program(self.task.seed_source, evaluation)
        self._begin(program)
        return program

    def restore(self, seed_program: Program, records: Iterable[IterationRecord]) -> None:
        """Take up a run from its stored seed program and its records, which must be iterations 1, 2, ... in order."""
        self._begin(seed_program)
        for record in records:
            if record.iteration != self._told + 1:
                raise ValueError(f"stored iteration {record.iteration} follows {self._told}: one is missing or double")
            self._note(record)
            self._absorb(self._told + 1 - self.config.lag)
        self._asked = self._told

    def ask(self) -> Request:
        """The next iteration's request. Raises :class:`NotReady`, or ``PromptError`` where no prompt can be made."""
        if not self.can_ask:
            raise NotReady(f"iteration {self._asked + 1} cannot be asked: {self._told} are told, lag {self.config.lag}")
        iteration = self._asked + 1
        self._absorb(iteration - self.config.lag)
        island = self._islands.of_iteration(iteration)
        parent, strategy = self._choose_parent(iteration, island)
        inspirations = self._choose_inspirations(iteration, island, parent, strategy)
        approach = self._choose_approach(iteration, island, parent, strategy)
        request = self._builder.build(
            iteration,
            island,
            parent=parent,
            inspirations=inspirations,
            strategy=strategy,
            approach=approach,
            base=self._base(island, parent, approach),
        )
        if self.config.strategy == "evolve":
            self._migrations[iteration] = self._islands.migration(iteration)
        self._asked = iteration
        return request

    def read(self, request: Request, reply: Reply) -> Candidates:
        """The reply's answers: children to judge, and those rejected with reasons. Changes nothing."""
        return read_reply(
            request,
            reply,
            self._builder.chain,
            seed_source=self.task.seed_source,
            language=self.task.language,
            known=self._known_number,
            max_chars=self.config.max_source_chars,
            new_files=isinstance(self.task, OpenEvolveTask) and self.task.new_files,
        )

    def tell(
        self,
        request: Request,
        reply: Reply,
        candidates: Candidates,
        evaluations: Sequence[Evaluation],
        *,
        elapsed_s: float = 0.0,
    ) -> IterationRecord:
        """Note an iteration's result: one evaluation per child, in order. Iterations are told in order.

        elapsed_s: see :class:`evolve.program.IterationRecord`.

        A child that another iteration has brought since ``read`` is rejected as known, so the record does not depend
        on when the reply was read. Raises ``ValueError`` for a wrong order or number, or an infrastructure failure.
        """
        self._expect(request)
        if len(evaluations) != len(candidates.children):
            raise ValueError(f"{len(candidates.children)} children but {len(evaluations)} evaluations")
        _reject_infrastructure(evaluations)
        programs: list[Program] = []
        rejected = list(candidates.rejected)
        for child, evaluation in zip(candidates.children, evaluations, strict=True):
            number = self._known_number(child.digest)
            if number is not None:
                rejected.append(known_as(number, child.index))
                continue
            program = Program(
                number=self._next_number + len(programs),
                iteration=request.iteration,
                index=child.index,
                island=request.island,
                parents=request.parents,
                source=child.source,
                digest=child.digest,
                operator=request.operator,
                evaluation=evaluation,
            )
            programs.append(program)
        rejected.sort(key=lambda item: item.index)
        return self._finish(
            request, programs, reply=reply, rejected=tuple(rejected), cut=candidates.cut, elapsed_s=elapsed_s
        )

    def fail(self, request: Request, error: str, *, elapsed_s: float = 0.0) -> IterationRecord:
        """Note an iteration whose request the model refused for good."""
        self._expect(request)
        return self._finish(request, [], error=error, elapsed_s=elapsed_s)

    def _begin(self, seed_program: Program) -> None:
        if self._seed_program is not None:
            raise NotReady("the run has begun already")
        self._seed_program = seed_program
        self._count(seed_program)
        self._ledger.begin(seed_program.evaluation.scalar, solved=seed_program.evaluation.solved)
        self._islands.seed(seed_program)
        self._lineage.remember(seed_program)
        self._notes.begin(seed_program)

    def _known_number(self, digest: str) -> int | None:
        return self._known.get(digest) if self.config.dedupe else None

    def _choose_parent(self, iteration: int, island: int) -> tuple[Program | None, str]:
        config, archive = self.config, self._islands[island]
        # Only the seed program says what an OpenEvolve evaluator expects: it stands for a prompt without a program.
        framed = isinstance(self.task, OpenEvolveTask)
        scratch = self._seed_program if framed else None
        if config.strategy == "sample":
            return scratch, "none"
        share = config.scratch_probability
        if share and generator(self.seed, iteration, "scratch").random() < share:
            return scratch, "scratch"
        parent, strategy = select_parent(archive, config.selection, generator(self.seed, iteration, "parent"))
        if config.scratch_when_zero and not framed and not any(parent.evaluation.reward):
            return None, "scratch"
        return parent, strategy

    def _choose_inspirations(self, iteration: int, island: int, parent: Program | None, strategy: str) -> list[Program]:
        if parent is None or strategy in ("none", "scratch") or not self.config.inspirations:
            return []
        rng = generator(self.seed, iteration, "inspirations")
        count, selection = self.config.inspirations, self.config.selection
        return select_inspirations(self._islands[island], parent, count, selection, rng)

    def _choose_approach(self, iteration: int, island: int, parent: Program | None, strategy: str) -> Approach:
        adaptation, config = self._adaptation, self.config
        form, model = adaptation.form(iteration, parent=parent is not None), adaptation.model(iteration)
        if config.strategy == "sample":
            return Approach(form=form, model=model)
        notes = self._notes.lines() if config.notes and self._builder.shows("notes") else ()
        if parent is None or strategy == "scratch":
            return Approach(form=form, model=model, notes=notes)
        archive = self._islands[island]
        history: tuple[ShownChange, ...] = ()
        if config.history and self._builder.shows("history"):
            history = self._lineage.history(parent, config.history, self._known_program)
        move, mate = adaptation.operator(iteration), None
        if OPERATORS[move].mates:
            mate = select_mate(archive, parent, config.selection, generator(self.seed, iteration, "mate"))
        focus = self._builder.focus(move, parent, mate, generator(self.seed, iteration, "focus"))
        if focus is None:  # nothing to combine or to mend
            move, mate, focus = IMPROVE, None, ()
        return Approach(move=move, mate=mate, focus=focus, form=form, model=model, history=history, notes=notes)

    def _base(self, island: int, parent: Program | None, approach: Approach) -> float:
        """The task scalar to exceed: the better parent's or, from scratch, that of the island's best."""
        parents = [program for program in (parent, approach.mate) if program] or self._islands[island].best(1)
        return max((program.evaluation.scalar for program in parents), default=0.0)

    def _known_program(self, number: int) -> Program | None:
        """A program that some island still has."""
        islands = (self._islands[island] for island in range(len(self._islands)))
        return next((archive[number] for archive in islands if number in archive), None)

    def _expect(self, request: Request) -> None:
        if request.iteration != self._told + 1 or request.iteration > self._asked:
            raise ValueError(f"iteration {request.iteration} was told where {self._told + 1} is due: tell in order")

    def _finish(
        self,
        request: Request,
        programs: list[Program],
        *,
        reply: Reply | None = None,
        rejected: tuple[Rejected, ...] = (),
        cut: int = 0,
        error: str | None = None,
        elapsed_s: float,
    ) -> IterationRecord:
        evaluations = len(programs)
        improved = any(program.evaluation.scalar > request.base for program in programs)
        migration = self._migrations.pop(request.iteration, Migration())
        programs.extend(self._moved(migration, request.iteration, self._next_number + len(programs)))
        info = _info(request, cut, migration)
        info["improved"] = improved
        best = max([p.evaluation.scalar for p in programs] + ([self._best.evaluation.scalar] if self._best else [0.0]))
        record = IterationRecord(
            iteration=request.iteration,
            island=request.island,
            parents=request.parents,
            reply=reply,
            programs=tuple(programs),
            rejected=rejected,
            evaluations=evaluations,
            best_scalar=best,
            solved=self.solved or any(program.evaluation.solved for program in programs),
            error=error,
            info=info,
            elapsed_s=elapsed_s,
        )
        self._note(record)
        return record

    def _moved(self, migration: Migration, iteration: int, number: int) -> Iterator[Program]:
        """Copies of this iteration's migrants, numbered from ``number``; they follow its n * m places."""
        first = self.config.samples * self._builder.chain.m
        for place, migrant in enumerate(migration.moves):
            yield replace(
                migrant.program,
                number=number + place,
                iteration=iteration,
                index=first + place,
                island=migrant.destination,
                parents=(migrant.program.number,),
                operator="migrant",
            )

    def _note(self, record: IterationRecord) -> None:
        for program in record.programs:
            self._count(program)
        self._islands.note(record)
        self._ledger.add(record)
        self._told = record.iteration
        self._waiting.append(record)

    def _count(self, program: Program) -> None:
        self._known.setdefault(program.digest, program.number)
        self._next_number = program.number + 1
        evaluation = program.evaluation
        if self._best is None or evaluation.scalar > self._best.evaluation.scalar:
            self._best = program
        if evaluation.solved and self._first_solved is None:
            self._first_solved = program.iteration

    def _absorb(self, last: int) -> None:
        while self._waiting and self._waiting[0].iteration <= last:
            record = self._waiting.popleft()
            self._islands.absorb(record)
            self._adaptation.absorb(record)
            self._notes.absorb(record, self._lineage)
            for program in record.programs:
                self._lineage.remember(program)


def _info(request: Request, cut: int, migration: Migration) -> dict[str, Any]:
    """What a record says beside its results: how the request came about."""
    info: dict[str, Any] = {"operator": request.operator, "strategy": request.strategy, "cut": cut}
    info["inspirations"] = list(request.inspirations)
    chosen = {"move": request.move, "model": request.model, "form": request.form}
    info |= {key: value for key, value in chosen.items() if value is not None}
    if migration.stagnant:
        info[STAGNANT] = list(migration.stagnant)
    return info


def _make_notes(task: Task) -> Notes:
    if isinstance(task, TestsTask):
        return Notes(tuple(test.name for test in task.prompt_tests(None)))
    return Notes(())


def _reject_infrastructure(evaluations: Sequence[Evaluation]) -> None:
    for evaluation in evaluations:
        if evaluation.infrastructure is not None:
            raise ValueError(f"a candidate could not be judged ({evaluation.infrastructure}): judge it again first")
