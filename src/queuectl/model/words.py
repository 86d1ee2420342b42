"""Words: which words of a shell line a shell reads a second time, however they are quoted. Quotes are in quoting.py."""

import re

_NAME = re.compile(r"\w+")
_VARIABLE = re.compile(r"(?<!\\)(?:\\\\)*\$[#+=~^]*(?:\w+|[@*?!#$-])(?:\[[^]]*\])*$")
_SEPARATORS = ";&|\n)"
_BEFORE_A_COMMAND = frozenset(["if", "then", "elif", "else", "while", "until", "do", "{", "!", "time"])
_COMPUTING = re.compile(r"-(?:eq|ne|lt|le|gt|ge|v|t)")
_ARRAY = re.compile(r"(?<=\w=|\+=)\((?:[ \t\n]|[\w./:,@%+*-]|'[^'\n]*'|\"[^\"$`\\\n]*\"|\"?\$\w+\"?)*\)(?=[\s;&|)]|$)")
_QUOTES = str.maketrans("", "", "'\"\\")
AS_A_NUMBER = "write $(({})) if it is a whole number"


class Words:
    """The words of one list of commands so far: of the line, or of what stands in (...) or $(...) in it."""

    def __init__(self, at: int, *, is_pattern: bool = False, is_test: bool = False) -> None:
        self._start = at
        self._is_pattern = is_pattern
        self._is_command_next = True
        self._is_test = is_test
        self._is_behind_copy = False
        self._brackets = {False: 0, True: 0}
        """How many brackets of subscripts are open, outside of double quotes and inside them."""
        self._mark = ""
        self._last_mark = ""
        self._last_computes = False

    def inner(self, line: str, at: int) -> "Words":
        """Return those of what a round bracket opens here: of commands, or of a pattern, whose end zsh may run."""
        is_command = (self._is_command_next and at == self._start) or line.endswith(("<", ">"), 0, at)
        return Words(at + 1, is_pattern=not is_command, is_test=self._is_test)

    def refusal(self) -> tuple[str, str] | None:
        """Return where a mark would stand now, and what to do instead, if no quotes make it safe there."""
        if self._is_behind_copy:
            return "behind >& or <&", "for both outputs write: > {} 2>&1"
        if any(self._brackets.values()):
            return "in a subscript", f"{AS_A_NUMBER}, or quote the '[' if it is none; behind a variable write ${{x}}["
        if self._is_pattern:
            return "in the round brackets of a pattern", "quote the brackets"
        return None

    def note_mark(self, mark: str) -> None:
        """Take note that the word holds a mark."""
        self._mark = mark

    def note_copy(self, after: int) -> None:
        """Begin the word behind >& or <&, which bash expands twice."""
        self._start = after
        self._is_behind_copy = True

    def note_bracket(self, line: str, at: int, *, is_quoted: bool) -> None:
        """Take note of a square bracket: what is between `x[` and `]` is computed, and zsh has `$x[...]`, too."""
        if line[at] == "]":
            self._brackets[is_quoted] = max(0, self._brackets[is_quoted] - 1)
            return
        word = line[self._start : at]
        if self._brackets[is_quoted] or _NAME.fullmatch(word) or _VARIABLE.search(word):
            self._brackets[is_quoted] += 1

    def end(self, line: str, at: int) -> str:
        """End the word before a character; return the mark that stands where [[...]] computes, if one does."""
        word = line[self._start : at].replace("\\\n", "")
        self._start = at + 1
        computed = self._take(word) if word else ""
        if at < len(line):
            self._is_command_next = line[at] in _SEPARATORS or (self._is_command_next and line[at] not in "<>")
        return computed

    def _take(self, word: str) -> str:
        computes = self._is_test and _COMPUTING.fullmatch(word.translate(_QUOTES)) is not None
        computed = self._last_mark if computes else self._mark if self._last_computes else ""
        self._last_mark, self._last_computes = self._mark, computes
        self._mark = ""
        self._is_behind_copy = False
        self._is_test = word == "[[" or (self._is_test and word != "]]")
        self._is_command_next = self._is_command_next and word in _BEFORE_A_COMMAND
        return computed

    def skip_to(self, at: int) -> None:
        """Begin the next word here, behind a comment or a bracket."""
        self._start = at


def closed_array(line: str, at: int) -> int:
    """Return how long the brackets of an array of plain words are that begin here; 0 if they hold anything else."""
    found = _ARRAY.match(line, at)
    return len(found[0]) if found else 0
