"""Quoting: where in a shell line a mark stands, so that what takes its place reaches the command as it is.

A value is put in single quotes whatever it holds; what stands around the mark decides what else that takes. Where no
quotes would do (a comment, a here-document, backticks, `${...}`) the line is refused, and so is whatever comes after
something this reader cannot follow: it would rather refuse a line that is right than run a value.
"""

import re
from enum import Enum

from queuectl.errors import BadInput
from queuectl.model.checks import shown_value
from queuectl.model.words import AS_A_NUMBER, Words, closed_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    Piece = str | tuple["re.Match[str]", "Place"]

_PARAMETER = re.compile(r"\$\{(?:[^{}'\"`\\$]|\$\w|\$\{\w+\})*\}")
_BACKTICKS = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)
_CASE = re.compile(r"(?<!\w)case(?!\w)")
_ENDS_A_WORD = " \t\n;&|<>"
_SPECIAL_PARAMETERS = "$?!@*#-"
_UNFINISHED = re.compile(r"[;&|(]\s*$")
_DOUBLE, _COMMAND, _ROUND, _SUM, _SUM_ROUND = '"', "$(", "(", "$((", "(("
_NEVER_CLOSED = {_DOUBLE: '"', _COMMAND: "$(", _SUM: "(("}


class Place(Enum):
    """What stands around a mark."""

    BARE = "bare"
    """No quotes: several values are several words."""
    QUOTED = "quoted"
    """It was in double quotes, which end before it and begin again behind it: several values are one word."""
    SINGLE = "single"
    """Single quotes, which go on."""
    NUMBER = "number"
    """A place where the shell computes and quotes do not help: only whole numbers may stand there."""


class Line:
    """A shell line cut at its marks."""

    def __init__(self, pieces: "list[Piece]", unending: str) -> None:
        self.pieces = pieces
        self.unending = unending
        """Why no word can be put behind it; nothing where one can."""


def cut(line: str, mark: "re.Pattern[str]") -> Line:
    """Cut a shell line at its marks, or raise where one stands in a place that no quotes make safe."""
    return _Walk(line, mark).run()


def in_single_quotes(value: str) -> str:
    """Return a word that a POSIX shell reads as just this value."""
    return "'" + value.replace("'", "'\\''") + "'"


class _Walk:
    """One pass over a line: what is open at each place, and the pieces so far."""

    def __init__(self, line: str, mark: "re.Pattern[str]") -> None:
        self._line = line
        self._mark = mark
        self._at = 0
        self._open: list[str] = []
        self._words = [Words(0)]
        """Of the line, and of each (...) and $(...) that is open."""
        self._pieces: list[Piece] = []
        self._text: list[str] = []
        self._fresh = -1
        """Where in the text a double quote was just opened, so that it can be left out."""
        self._blind_from: int | None = None
        self._blind_for = ""
        self._ending = ""
        self._escaped_to = 0
        """Where the last character behind a backslash ends."""

    def run(self) -> Line:
        while self._at < len(self._line):
            self._step()
        self._end_word()
        while len(self._words) > 1:
            self._words.pop()
            self._end_word()
        self._flush()
        if self._blind_from is None:
            for frame in self._open:
                if frame in _NEVER_CLOSED:
                    raise BadInput(f"{_NEVER_CLOSED[frame]} is never closed in {shown_value(self._line)}")
        return Line(self._pieces, self._unending())

    def _unending(self) -> str:
        if self._blind_from is not None:
            return f"it has {self._blind_for}"
        if self._ending:
            return f"it ends in {self._ending}"
        if refused := self._words[0].refusal():
            return f"it would stand {refused[0]}"
        return "its last command is empty" if _UNFINISHED.search(self._line) else ""

    def _step(self) -> None:
        if found := self._mark.match(self._line, self._at):
            self._place(found)
        elif self._top == _DOUBLE:
            self._in_double_quotes(self._line[self._at])
        elif self._top in (_SUM, _SUM_ROUND):
            self._in_sum(self._line[self._at])
        else:
            self._in_the_open(self._line[self._at])

    @property
    def _top(self) -> str:
        return self._open[-1] if self._open else ""

    def _in_the_open(self, char: str) -> None:
        if char == "\\":
            self._backslash()
        elif char == "'":
            self._single_quotes()
        elif char == '"':
            self._push(_DOUBLE, 1)
            if not self._line.endswith("$", 0, self._at - 1):
                self._fresh = len(self._text)
        elif char == "`":
            self._backticks()
        elif char == "$":
            self._dollar()
        elif char == "#":
            self._hash()
        elif char in "()":
            self._round(char)
        else:
            self._plain(char)

    def _plain(self, char: str) -> None:
        if char in _ENDS_A_WORD:
            self._end_word()
        elif char in "[]":
            self._words[-1].note_bracket(self._line, self._at, is_quoted=False)
        if char in "<>" and self._line.startswith("&", self._at + 1):
            self._take(2)
            self._words[-1].note_copy(self._at)
            return
        if char == "<" and self._line.startswith("<<", self._at):
            length = 3 if self._line.startswith("<<<", self._at) else 2
            if length == 2:  # not from the next line on: a value may hold a newline itself
                self._go_blind("the << of a here-document", self._at)
            self._take(length)
            return
        if char == "c" and _CASE.match(self._line, self._at) and self._is_guarded():
            self._go_blind('case inside "$(...)"', self._at)  # its round brackets come without the opening one
        self._take(1)

    def _is_guarded(self) -> bool:
        """Whether it matters which round bracket is closed."""
        return not {_DOUBLE, _SUM}.isdisjoint(self._open) or any(words.refusal() for words in self._words)

    def _round(self, char: str) -> None:
        if char == "(":
            self._round_opens()
            return
        self._end_word()
        if self._open:  # else it ends a pattern of `case`
            self._words.pop()
            if self._open.pop() == _ROUND:
                self._words[-1].skip_to(self._at + 1)
        self._take(1)

    def _round_opens(self) -> None:
        if self._line.endswith("=", 0, self._at):
            length = closed_array(self._line, self._at)
            if length and not self._mark.search(self._line, self._at, self._at + length):
                self._take(length)
                return
            self._go_blind("the =( of an array", self._at)  # bash goes on with the next line when it cannot read one
        if self._line.startswith("((", self._at):
            self._push(_SUM, 2)
            return
        inner = self._words[-1].inner(self._line, self._at)
        self._end_word()
        self._words.append(inner)
        self._push(_ROUND, 1)

    def _end_word(self) -> None:
        if mark := self._words[-1].end(self._line, self._at):
            raise self._unsafe(mark, "where [[...]] computes or looks for a variable", AS_A_NUMBER)

    def _in_double_quotes(self, char: str) -> None:
        if char == '"':
            self._open.pop()
            self._take(1)
        elif char == "\\":
            if self._mark.match(self._line, self._at + 1):
                raise self._refusal(
                    self._at, "behind a backslash in double quotes", "write two backslashes if one is meant"
                )
            self._backslash()
        elif char == "`":
            self._backticks()
        elif char == "$":
            self._dollar()
        else:
            if char in "[]":
                self._words[-1].note_bracket(self._line, self._at, is_quoted=True)
            self._take(1)

    def _in_sum(self, char: str) -> None:
        if char == "$":
            self._dollar()
        elif char == "(":
            self._push(_SUM_ROUND, 1)
        elif char == ")":
            self._end_of_sum()
        else:
            if char in "'\"`\\":
                self._go_blind("quotes inside ((...))", self._at)
            self._take(1)

    def _end_of_sum(self) -> None:
        is_outer = self._top == _SUM
        if is_outer and not self._line.startswith("))", self._at):
            self._go_blind("'((' that no '))' closes", self._at)
        self._open.pop()
        self._take(2 if is_outer else 1)

    def _dollar(self) -> None:
        following = self._line[self._at + 1 : self._at + 2]
        after = self._at + (2 if following == "$" else 1)
        if self._mark.match(self._line, after):
            raise self._refusal(after, "behind a '$'", "write \\$ for a dollar sign, $1 for the shell's own {1}")
        if following == "$" and self._line.startswith("'", after):  # zsh reads $$'...' as $ and $'...'
            self._go_blind("$$ and quotes", self._at)
        if self._line.startswith("$((", self._at):
            self._push(_SUM, 3)
        elif following == "(":
            self._push(_COMMAND, 2)
            self._words.append(Words(self._at))
        elif following == "{":
            self._parameter()
        elif following == "'" and self._top != _DOUBLE:
            self._escaped_quotes()
        else:
            if following == "[":
                self._go_blind("$[...]", self._at)
            self._take(2 if following and following in _SPECIAL_PARAMETERS else 1)

    def _parameter(self) -> None:
        found = _PARAMETER.match(self._line, self._at)
        if found is None:
            self._go_blind("${...} with quotes or more inside it", self._at)
        self._take(2 if found is None else len(found[0]))

    def _escaped_quotes(self) -> None:
        """Pass over bash's $'...': other shells read another end, if a backslash stands before it."""
        end = self._line.find("'", self._at + 2)
        if end < 0 or self._line[end - 1] == "\\":
            self._go_blind("$'...' with \\' in it", self._at)
        end = len(self._line) if end < 0 else end
        self._refuse_within(end, "in $'...'", "use plain quotes")
        self._take(end + 1 - self._at)

    def _single_quotes(self) -> None:
        end = self._line.find("'", self._at + 1)
        if end < 0:
            if self._blind_from is None:
                raise BadInput(f"' is never closed in {shown_value(self._line)}")
            end = len(self._line)
        self._take(1)
        while found := self._mark.search(self._line, self._at, end):
            self._take(found.start() - self._at)
            self._put(found, Place.SINGLE)
        self._take(end + 1 - self._at)

    def _backticks(self) -> None:
        found = _BACKTICKS.match(self._line, self._at)
        if found is None:
            self._go_blind("a backtick that is never closed", self._at)
            self._take(1)
            return
        self._refuse_within(found.end(), "in backticks", "write $(...) instead of them")
        self._take(len(found[0]))

    def _backslash(self) -> None:
        if self._at + 1 == len(self._line):
            self._ending = "a backslash"
        if self._line.startswith("\\\n", self._at) and not self._line[: self._at].endswith((" ", "\t", "\n")):
            self._go_blind("a line that goes on in the middle of a word", self._at)
        self._take(2)
        self._escaped_to = self._at

    def _hash(self) -> None:
        before = self._line[self._at - 1 : self._at]
        is_escaped = self._at == self._escaped_to and before != "\n"
        if self._at == 0 or (before in " \t\n;&|" and self._at != self._escaped_to):
            self._comment()
            return
        if before in " \t\n;&|()<>" and not is_escaped:
            self._go_blind("a '#' that may begin a comment", self._at)
        self._take(1)

    def _comment(self) -> None:
        end = self._line.find("\n", self._at)
        if end < 0:
            end = len(self._line)
            self._ending = "a comment"
        self._refuse_within(end, "in a comment", "leave the comment out, or quote the '#'")
        self._take(end - self._at)
        self._words[-1].skip_to(end)

    def _place(self, found: "re.Match[str]") -> None:
        if self._top in (_SUM, _SUM_ROUND):
            self._put(found, Place.NUMBER)
        elif self._top != _DOUBLE:
            self._put(found, Place.BARE)
        else:
            if self._fresh == len(self._text):
                self._text.pop()
            else:
                self._text.append('"')
            self._put(found, Place.QUOTED)
            if self._line.startswith('"', self._at):
                self._open.pop()
                self._at += 1
            else:
                self._text.append('"')
                self._fresh = len(self._text)

    def _put(self, found: "re.Match[str]", place: Place) -> None:
        if self._blind_from is not None and found.start() >= self._blind_from:
            hint = "put the value before it, or put all of it into a script and hand that the value"
            raise BadInput(f"{found[0]} stands behind {self._blind_for}: how to quote it cannot be told", hint=hint)
        if place is not Place.NUMBER:
            for words in self._words:
                if refused := words.refusal():
                    raise self._unsafe(found[0], *refused)
            self._words[-1].note_mark(found[0])
        self._flush()
        self._pieces.append((found, place))
        self._at = found.end()

    def _flush(self) -> None:
        if self._text:
            self._pieces.append("".join(self._text))
        self._text = []
        self._fresh = -1

    def _push(self, frame: str, length: int) -> None:
        self._take(length)
        self._open.append(frame)

    def _take(self, length: int) -> None:
        if length:
            self._text.append(self._line[self._at : self._at + length])
        self._at += length

    def _go_blind(self, reason: str, start: int) -> None:
        if self._blind_from is None or start < self._blind_from:
            self._blind_from, self._blind_for = start, reason

    def _refuse_within(self, end: int, where: str, hint: str) -> None:
        if found := self._mark.search(self._line, self._at, end):
            raise self._refusal(found.start(), where, hint)

    def _refusal(self, at: int, where: str, hint: str) -> BadInput:
        found = self._mark.search(self._line, at)
        return self._unsafe(found[0] if found else "", where, hint)

    def _unsafe(self, mark: str, where: str, hint: str) -> BadInput:
        return BadInput(f"{mark} stands {where}: no quotes make a value safe there", hint=hint)
