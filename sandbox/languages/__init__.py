"""The languages that candidates may be written in: one declarative module each, listed here."""

from sandbox.languages import cpp, python
from sandbox.languages.language import Language

LANGUAGES: dict[str, Language] = {language.name: language for language in (python.LANGUAGE, cpp.LANGUAGE)}

__all__ = ["LANGUAGES", "Language"]
