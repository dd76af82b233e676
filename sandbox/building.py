"""Programs in other languages than Python: built once per candidate in a jail, run once per test in another one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sandbox.grading import MESSAGE_CHARS, broken, clip, judge_ending, verdict
from sandbox.inside.supervisor import SCRATCH
from sandbox.jail.launcher import Job, Report
from sandbox.languages import Language
from sandbox.limits import Limits
from sandbox.payload import ENVIRONMENT, common_payload, stdin_tests
from sandbox.verdict import Status, Verdict

SOURCE_FOLDER, PROGRAM = "/source", "/program/program"
PROGRAM_BYTES = 32 << 20
COMPLAINT = re.compile(r"\b(error|fatal)\b")


def build_job(language: Language, source: str) -> Job:
    """The job that builds a program; its answer is the file that was made, if the language makes one."""
    made = f"{SCRATCH}/program"
    test = {
        "stdin": b"",
        "argv": _filled(language.build, f"{SOURCE_FOLDER}/{language.file}", made),
        "made": made if language.compiles else "",
    }
    payload = common_payload() | {
        "tests": [test],
        "answer_bytes": PROGRAM_BYTES,
        "keep_going": True,
        "environment": {**ENVIRONMENT, "TMPDIR": SCRATCH},
    }
    return Job(harness="build", payload=payload, limits=language.build_limits, files=_source_file(language, source))


def read_build(language: Language, report: Report | str) -> bytes | Verdict:
    """The program that was made (empty where the build only checks), or the verdict on all tests of one that failed."""
    if isinstance(report, str):
        return broken("build", report)
    failed = judge_ending("build", report, language.build_limits)
    if failed is None:
        return report.answer
    message = failed.message
    if failed.status is Status.ERROR:
        message = compiler_message(report.stderr) or message
    return verdict("build", report, failed.status, f"{language.title} compiler: {message}")


def compiler_message(stderr: bytes) -> str:
    """What the compiler complains about, without the name of the folder."""
    text = stderr.decode("utf-8", "replace").replace(f"{SOURCE_FOLDER}/", "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if COMPLAINT.search(line)]
    return clip("; ".join(errors or lines[-2:]), MESSAGE_CHARS - 40)


def run_job(language: Language, source: str, built: bytes, inputs: Sequence[str], limits: Limits) -> Job:
    """The job that runs the program once per standard input."""
    argv = _filled(language.run, f"{SOURCE_FOLDER}/{language.file}", PROGRAM)
    tests = [{**test, "argv": argv} for test in stdin_tests(inputs)]
    files = {PROGRAM: built} if language.compiles else _source_file(language, source)
    return Job(harness="program", payload=common_payload() | {"tests": tests}, limits=limits, files=files)


def _source_file(language: Language, source: str) -> dict[str, bytes]:
    return {f"{SOURCE_FOLDER}/{language.file}": source.encode("utf-8", "surrogatepass")}


def _filled(command: Sequence[str], source: str, program: str) -> list[str]:
    return [part.replace("{source}", source).replace("{program}", program) for part in command]
