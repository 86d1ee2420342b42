"""Template: a command with places for values, as GNU parallel has them, filled in once per set of values.

A shell line gets its values quoted, always (quoting.py); the words of an argument vector get them as they are.
"""

import re

from queuectl.errors import BadInput
from queuectl.model.checks import MAX_COMMAND_BYTES, MAX_WORD_BYTES, as_text, check_command, check_word, shown_value
from queuectl.model.quoting import Place, cut, in_single_quotes
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Fill = Callable[[Sequence[str], int], str]

MARK = "{}"
_BARE_MARK = r"\{\}"
_OTHER_MARKS = r"\{(?:(?P<list>-?[1-9][0-9]{0,8})?(?P<part>//|/\.|/|\.)|(?P<only>-?[1-9][0-9]{0,8})|(?P<number>\#))\}"
_UNFIT_FOR_A_MARK = re.compile(r"[\s'\"\\$`()<>;&|\0]")
_WHOLE_NUMBER = re.compile(r"-?[0-9]+")


class Slot(Value):
    """A place for a value."""

    which: int | None
    """Which list it is of, from 1, or from the end if negative; None means every one."""
    part: str
    """What of the value: `.`, `/`, `//` or `/.` as GNU parallel has them, all of it, or `#`: the number of the job."""
    place: Place | None
    """What stands around it in a shell line; None in an argument vector."""
    text: str
    """As it is written."""

    def filler(self) -> "Fill":
        """Return what makes the text of this place from a set of values and the number of the job."""
        if self.place is Place.BARE and self.which is not None:  # nearly every one, and there may be a million values
            part, place = _PARTS[self.part], self.place_in_row
            return lambda values, _: "'" + part(values[place]).replace("'", "'\\''") + "'"
        choose = self.chooser()
        if self.place is Place.BARE:
            return lambda values, number: " ".join(map(in_single_quotes, choose(values, number)))
        if self.place is Place.QUOTED:
            return lambda values, number: in_single_quotes(" ".join(choose(values, number)))
        if self.place is Place.SINGLE:
            return lambda values, number: in_single_quotes(" ".join(choose(values, number)))[1:-1]
        if self.place is Place.NUMBER:
            return lambda values, number: _whole_number(self, " ".join(choose(values, number)))
        return lambda values, number: " ".join(choose(values, number))

    def chooser(self) -> "Callable[[Sequence[str], int], Sequence[str]]":
        """Return what chooses the texts that stand here: one for each list it is of."""
        if self.part == "#":
            return lambda _, number: (str(number),)
        part = _PARTS[self.part]
        if self.which is None:
            return lambda values, _: [part(value) for value in values]
        place = self.place_in_row
        return lambda values, _: (part(values[place]),)

    @property
    def place_in_row(self) -> int:
        """Which of the values of a row it stands for."""
        assert self.which is not None
        return self.which - 1 if self.which > 0 else self.which


class Template(Value):
    """A command with slots: the pieces of a shell line, or of each word of an argument vector."""

    pieces: "tuple[str | Slot, ...]" = ()
    words: "tuple[tuple[str | Slot, ...], ...] | None" = None
    unending: str = ""

    @property
    def slots(self) -> list[Slot]:
        """Its slots, in order."""
        pieces = self.pieces if self.words is None else [piece for word in self.words for piece in word]
        return [piece for piece in pieces if isinstance(piece, Slot)]

    def for_lists(self, count: int, *, silent: int = 0) -> "Template":
        """Return it for so many lists: where it has no slot, those behind the first `silent` ones are put at its end.

        Raises when it names a list that is not there.
        """
        for slot in self.slots:
            if slot.which is not None and abs(slot.which) > count:
                lists = "there is one list" if count == 1 else f"there are {count} lists"
                as_it_is = slot.text.replace("{", "{''", 1)
                raise BadInput(
                    f"{slot.text} names list {abs(slot.which)}, but {lists}",
                    hint=f"to have it as it is, write {as_it_is} in a shell line",
                )
        if self.slots or count == silent:
            return self._of_one() if count == 1 else self
        if self.unending:
            raise BadInput(f"no value can be put behind the command: {self.unending}", hint="say where with {}")
        place = Place.BARE if self.words is None else None
        added = [
            Slot(which=number, part="", place=place, text=f"{{{number}}}" if count > 1 else MARK)
            for number in range(silent + 1, count + 1)
        ]
        if self.words is not None:
            return self.replace(words=(*self.words, *((slot,) for slot in added)))
        return self.replace(pieces=(*self.pieces, *(piece for slot in added for piece in (" ", slot))))

    def _of_one(self) -> "Template":
        """Return it with {} as {1} where nothing is around it: there is one list."""
        return self.replace(pieces=tuple(map(_first, self.pieces)))

    def command_maker(self) -> "Fill":
        """Return what makes the shell line for a set of values; they were checked, its length is checked here."""
        fills: list[Fill] = [_filler(piece) for piece in self.pieces]

        def make(values: "Sequence[str]", number: int) -> str:
            line = "".join([fill(values, number) for fill in fills])
            if len(line) > MAX_COMMAND_BYTES // 4:
                check_command(f"command {number}", line)
            return line

        return make

    def argv_maker(self) -> "Callable[[Sequence[str], int], tuple[str, ...]]":
        """Return what makes the argument vector for a set of values."""
        made_of = [_words_of(word) for word in self.words or ()]

        def make(values: "Sequence[str]", number: int) -> tuple[str, ...]:
            words = [word for words in made_of for word in words(values, number)]
            if not words[0]:
                raise BadInput(f"command {number}: the program name is empty")
            if sum(map(len, words)) > MAX_WORD_BYTES // 4:
                _check_words(words, number)
            return tuple(words)

        return make

    def command(self, values: "Sequence[str]", number: int) -> str:
        """Return the shell line for one set of values."""
        return self.command_maker()(values, number)

    def argv(self, values: "Sequence[str]", number: int) -> tuple[str, ...]:
        """Return the argument vector for one set of values."""
        return self.argv_maker()(values, number)


def read_line(line: str, mark: str = MARK) -> Template:
    """Read a template of a shell line."""
    found = cut(check_command("command", line), _pattern(mark))
    pieces = (piece if isinstance(piece, str) else _slot(*piece) for piece in found.pieces)
    return Template(pieces=tuple(pieces), unending=found.unending)


def read_words(words: "Sequence[str]", mark: str = MARK) -> Template:
    """Read a template of an argument vector."""
    if not words or not words[0]:
        raise BadInput("the program name is empty")
    pattern = _pattern(mark)
    for word in words:
        check_word("a word of the command", as_text("a word of the command", word))
    return Template(words=tuple(_cut_word(word, pattern) for word in words))


def read_text(text: str, mark: str = MARK) -> Template:
    """Read a template of a text that is no command: nothing is quoted in it, and `command` returns it."""
    return Template(pieces=_cut_word(text, _pattern(mark)))


def check_value(value: object, where: str) -> str:
    """Return a value that can be stored and run, or raise; `where` names it."""
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            shown = value.encode(errors="surrogateescape").decode(errors="backslashreplace")
            raise BadInput(
                f"{where} is not valid UTF-8: {shown_value(shown)}",
                hint="a command is kept as text; rename the file, or hand over a pattern or a number that finds it",
            ) from None
    return as_text(where, value)


def _pattern(mark: str) -> "re.Pattern[str]":
    if mark == MARK:
        return re.compile(f"{_BARE_MARK}|{_OTHER_MARKS}")
    if not mark or _UNFIT_FOR_A_MARK.search(mark):
        raise BadInput(
            f"bad replacement string {shown_value(mark)}", hint="choose one without blanks, quotes, $ ` ( ) < > ; & |"
        )
    return re.compile(f"{re.escape(mark)}|{_OTHER_MARKS}")


def _slot(found: "re.Match[str]", place: Place | None) -> Slot:
    number = found["list"] or found["only"]
    part = found["part"] or found["number"] or ""
    return Slot(which=int(number) if number else None, part=part, place=place, text=found[0])


def _cut_word(word: str, pattern: "re.Pattern[str]") -> "tuple[str | Slot, ...]":
    pieces: list[str | Slot] = []
    at = 0
    for found in pattern.finditer(word):
        if found.start() > at:
            pieces.append(word[at : found.start()])
        pieces.append(_slot(found, None))
        at = found.end()
    if at < len(word) or not word:
        pieces.append(word[at:])
    return tuple(pieces)


def _first(piece: "str | Slot") -> "str | Slot":
    if isinstance(piece, Slot) and piece.place is Place.BARE and piece.which is None and piece.part != "#":
        return piece.replace(which=1)
    return piece


def _filler(piece: "str | Slot") -> "Fill":
    return piece.filler() if isinstance(piece, Slot) else lambda _values, _number: piece


def _words_of(word: "tuple[str | Slot, ...]") -> "Callable[[Sequence[str], int], Sequence[str]]":
    """Return what makes the words that a word of the template stands for: several, if it is {} of several lists."""
    if len(word) == 1 and isinstance(word[0], Slot):
        return word[0].chooser()
    fills = [_filler(piece) for piece in word]
    return lambda values, number: ("".join([fill(values, number) for fill in fills]),)


def _check_words(words: "Sequence[str]", number: int) -> None:
    for word in words:
        check_word(f"a word of command {number}", word)
    if sum(len(word.encode()) for word in words) > MAX_COMMAND_BYTES:
        raise BadInput(f"command {number} has more than {MAX_COMMAND_BYTES} bytes", hint="pass a file name instead")


def _whole_number(slot: Slot, text: str) -> str:
    if not _WHOLE_NUMBER.fullmatch(text):
        raise BadInput(
            f"{slot.text} stands where the shell computes, and {shown_value(text)} is no whole number",
            hint="no quotes make another value safe in ((...)); for brackets in brackets write ( (",
        )
    return f"({text})" if text.startswith("-") else text


def _stem(path: str) -> str:
    """Return a path without the last extension of its last part."""
    head, dot, tail = path.rpartition(".")
    return head if dot and "/" not in tail else path


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _folder(path: str) -> str:
    """Return the folder of a path, as dirname(1) has it."""
    head, slash, _ = path.rstrip("/").rpartition("/")
    if not slash:
        return "/" if path.startswith("/") else "."
    return head.rstrip("/") or "/"


_PARTS: "dict[str, Callable[[str], str]]" = {
    "": lambda value: value,
    ".": _stem,
    "/": _base,
    "//": _folder,
    "/.": lambda value: _stem(_base(value)),
}
