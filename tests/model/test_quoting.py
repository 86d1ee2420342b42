"""Quoting: a value reaches the command as it is, wherever its mark stands; real shells are asked."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queuectl.errors import BadInput
from queuectl.model.quoting import in_single_quotes
from queuectl.model.template import read_line

SHELLS = ["sh", "bash", pytest.param("zsh", marks=pytest.mark.needs("zsh"))]
REAL = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
VALUE = "\N{WHITE SQUARE}"
"""Stands for the value in what a shell is expected to print."""

nasty = st.sampled_from(
    ["'", '"', "\\", "$", "`", "$(id)", "${HOME}", "\n", " ", "-n", "--", "*", "~", "!", "#", ";", "&", "|", "<", ">",
     "(", ")", "{", "}", "[", "]", "=", "%s", "é", "日本", "\x7f", "\t", "\r", "=", "if", "2", "\x01"]
)  # fmt: skip
values = st.lists(nasty | st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8).map("".join)


@st.composite
def _in_double_quotes(draw: st.DrawFn, word: "st.SearchStrategy[tuple[str, str]]") -> tuple[str, str]:
    """A word in double quotes, with marks, variables and commands in it."""
    parts = [("{}", VALUE), ("- y", "- y"), (r"\"", '"'), (r"\\", "\\"), (r"\$", "$"), ("'", "'"), ("$v", "V"),
             ("${v}", "V"), ("${w:-d $v}", "d V"), ("# ", "# "), ("(", "("), ("$((1 + 2))", "3"),
             ("`echo b`", "b")]  # fmt: skip
    inner = word.map(lambda pair: (f"$(printf '%s' {pair[0]}x)", f"{pair[1]}x"))
    chosen = draw(st.lists(st.sampled_from(parts) | inner, max_size=4))
    return '"' + "".join(text for text, _ in chosen) + '"', "".join(shown for _, shown in chosen)


def _glued(pairs: "list[tuple[str, str]]") -> tuple[str, str]:
    return "".join(text for text, _ in pairs), "".join(shown for _, shown in pairs)


plain = st.sampled_from(
    [("{}", VALUE), ("'a {} b'", f"a {VALUE} b"), ("'{}'", VALUE), ('"{}"', VALUE), ("x", "x"), (r"\{\}", "{}"),
     (r"\ #", " #"), (r"\'", "'"), ("'#'", "#"), ("'{print $1}'", "{print $1}"), ("a#", "a#"), (r"\$", "$"),
     ('"$v"', "V")]
)  # fmt: skip
words = st.recursive(
    plain, lambda inner: st.lists(inner | _in_double_quotes(inner), min_size=1, max_size=4).map(_glued), max_leaves=8
)
# A command around %s, which prints what %s prints.
around = st.sampled_from(
    ["%s", "( %s )", "{ %s; }", "if true; then %s; fi", "case x in x) %s ;; esac", "%s | cat", "true && %s # done\n",
     "# it's\n%s", "(case x in (y) ;; x) %s;; esac)", "f() { %s; }; f", "echo $((2 * (1 + 2))) >/dev/null; %s",
     "true `echo \"it's\"`; %s", "%s; : <<E\nit's\nE\n", ": ${v} ${v:-it} ${#v}; %s", "for i in 1; do %s; done"]
)  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
@REAL
@given(word=words, around=around, value=values)
def test_a_value_reaches_the_command_as_it_is(shell: str, word: tuple[str, str], around: str, value: str) -> None:
    text, shown = word
    line = around.replace("%s", f"printf '%s\\0' {text}", 1)

    command = read_line(line).for_lists(1, silent=1).command([value], 1)

    assert _printed(shell, command) == shown.replace(VALUE, value).encode() + b"\0"


@pytest.mark.parametrize("shell", SHELLS)
@REAL
@given(
    line=st.lists(
        st.sampled_from(
            ["'", '"', "\\", "$", "(", ")", "{}", "{}", "{}", " ", "echo ", "`", "#", "\n", "<<E", "\nE\n", "${v}",
             "${v:-", "}", "$((", "))", "case x in x) ", ";; ", "esac", "; ", "|", "$'", "x", "<<<", "((", "$[", "]",
             ">&", "x[", "$x[", "]=", "[[ ", " -eq ", " -v ", " ]]", "a=(1 2)", "*(", "$#", "$$", "\\\n",
             '"$(', ')"', "if ", "then ", "fi;", "()", "{ ", "a=", "=(", "~", "<(", "$v", "1"]
        ),
        min_size=2,
        max_size=14,
    ).map("".join),
    value=st.lists(
        st.sampled_from(
            ["';>ran;'", '";>ran;"', "$(>ran)", "`>ran`", "\n>ran\n", ");>ran;(", "}\n>ran\n{", "a[$(>ran)]", "\\",
             "#\n>ran\n", "E\n>ran\n", "))\n>ran\n", ";;esac\n>ran\n", "x[$(>ran)]=1", "\\';>ran;", '\\";>ran;']
        ),
        min_size=1,
        max_size=3,
    ).map("".join),
)  # fmt: skip
def test_no_line_that_is_taken_runs_a_value(shell: str, line: str, value: str, tmp_path: Path) -> None:
    """Most lines made at random are refused, or are no shell; of the others none may come to run what a value says."""
    try:
        command = read_line(line).for_lists(1, silent=1).command([value], 1)
    except BadInput:
        return

    _run(shell, command, tmp_path)

    assert not (tmp_path / "ran").exists()


def test_that_check_sees_a_value_that_runs(tmp_path: Path) -> None:
    _run("sh", "echo '" + "';>ran;'" + "'", tmp_path)

    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "line, where",
    [
        ("echo `cat {}`", "in backticks"),
        ('echo "`cat {}`"', "in backticks"),
        ("ls # {}", "in a comment"),
        ("cat <<E\n{}\nE", "behind the << of a here-document"),
        ("cat <<E\nx\nE\necho {}", "behind the << of a here-document"),
        ("cat <<E >{}\nx\nE", "behind the << of a here-document"),
        ("a=(|{}", "behind the =( of an array"),
        ("echo $${}", "behind a '$'"),
        ("echo $$'{}'", "behind $$ and quotes"),
        ("echo ${}", "behind a '$'"),
        ('echo "${1}"', "behind a '$'"),
        ("echo ${v:-{}}", "behind ${...}"),
        ('echo ${v:-"x"} {}', "behind ${...}"),
        (r'echo "\{}"', "behind a backslash in double quotes"),
        (r"echo $'\n{}'", "in $'...'"),
        (r"echo $'it\'s' {}", r"behind $'...' with \' in it"),
        ('echo "$(case x in x) echo {};; esac)"', 'behind case inside "$(...)"'),
        ("echo $[1 + {}]", "behind $[...]"),
        ("echo $((echo '{}') | cat)", "behind quotes inside ((...))"),
        ("echo $(true)#' {} '", "behind a '#' that may begin a comment"),
        ("echo a \\\n#'\n{} '", "behind a '#' that may begin a comment"),
        ("echo a\\\n {}", "behind a line that goes on in the middle of a word"),
        ("make >& {.}.log", "behind >& or <&"),
        ("echo hi >&{}", "behind >& or <&"),
        ("echo hi >&1{}", "behind >& or <&"),
        ("echo hi >& \\\n {}", "behind >& or <&"),
        ('echo hi >&"$(basename {}).log"', "behind >& or <&"),
        ("cat <&{}", "behind >& or <&"),
        ("cat <<{}\nx\n", "behind the << of a here-document"),
        ("cat <<E{}\nx\n", "behind the << of a here-document"),
        ("x[{}]=1", "in a subscript"),
        ("x[{}]+=1", "in a subscript"),
        ("x['{}']=1", "in a subscript"),
        ('x["]"{}]=1', "in a subscript"),
        ("y=2 x[1 + {}]=1", "in a subscript"),
        ("x[(1) + y[2] + {}]=1", "in a subscript"),
        ("x[$(wc -l <{})]=1", "in a subscript"),
        ("echo $x[{}]", "in a subscript"),
        ('echo "a $x[{}]"', "in a subscript"),
        ("echo $x[1][{}]", "in a subscript"),
        ("a=([{}]=1)", "behind the =( of an array"),
        ("a=(x {})", "behind the =( of an array"),
        ("[[ {} -eq 1 ]]", "where [[...]] computes"),
        ("[[ 1 -lt {} ]]", "where [[...]] computes"),
        ('if [[ -n x && ( 1 -ge "a{}" ) ]]; then :; fi', "where [[...]] computes"),
        ("[[ {}\n-ne 1 ]]", "where [[...]] computes"),
        ("[[ ! -v {} ]]", "where [[...]] computes"),
        ("[[ -t '{}' ]]", "where [[...]] computes"),
        ("echo *(e:{}:)", "in the round brackets of a pattern"),
        ("echo ({})", "in the round brackets of a pattern"),
        ('echo *("$(echo {})")', "in the round brackets of a pattern"),
        ("echo 'a", "' is never closed"),
        ('echo "a {}', '" is never closed'),
        ("echo $(ls {}", "$( is never closed"),
        ("echo $((1 + {}", "(( is never closed"),
    ],
)
def test_a_place_that_no_quotes_make_safe_is_refused(line: str, where: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_line(line)

    assert where in refused.value.message


# What a shell makes of a value that is quoted there: why these places are refused.
RUNS = [
    ("bash", "echo hi >&{}", "$(>ran)"),
    ("bash", "x[{}]=1", "$(>ran)"),
    ("bash", 'x["]"{}]=1', "$(>ran)"),
    ("bash", "a=([{}]=1)", "$(>ran)"),
    ("bash", "[[ {} -eq 1 ]]", "a[$(>ran)]"),
    ("bash", "[[ -v {} ]]", "a[$(>ran)]"),
    ("zsh", "x[{}]=1", "$(>ran)"),
    ("zsh", 'x=abc; echo "$x"$x[{}]', "$(>ran)"),
    ("zsh", "[[ -t {} ]]", "x[$(>ran)]=1"),
    ("zsh", "echo ({})", "x[$(>ran)]=1"),
]


@pytest.mark.needs("zsh")
@pytest.mark.parametrize("shell, line, value", RUNS)
def test_a_line_that_would_run_a_quoted_value_is_refused(shell: str, line: str, value: str, tmp_path: Path) -> None:
    _run(shell, line.replace("{}", in_single_quotes(value)), tmp_path)
    assert (tmp_path / "ran").exists()

    with pytest.raises(BadInput):
        read_line(line)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "line",
    [
        "ls >./{} 2>&1 || echo {} >&2",
        "echo hi 2>&1 {}",
        "echo hi >&2; echo {}",
        "[[ {} = x && 2 -gt 1 && -f {} ]] || echo {}",
        "[[ $(wc -l <{}) -gt 10 ]]",
        "[[ $(echo {} -eq) = {} ]]",
        'echo [{}] [a{}] \'x[\'{}] "x[{}]" ${v}[{}] "${v}[{}]" \\$v[{}]',
        "y=x[{}] env z[1]={}",
        "a=(1 2); echo {}",
        'a=(1 \'b c\' "d" $v "$v" *.x\n/e); b+=(2) && echo {}',
        "(echo {}); if (echo {}); then ! (echo {}); fi | (cat; echo {}) && (case x in x) (echo {});; esac)",
        "cat <(echo {})",
        "f() { echo {}; }; f",
    ],
)
def test_places_near_those_that_are_refused_take_any_value(shell: str, line: str, tmp_path: Path) -> None:
    for value in ("$(>ran)", "a[$(>ran)]", "x[$(>ran)]=1", "\n>ran\n", "';>ran;'", "e:>ran:"):
        _run(shell, read_line(line).for_lists(1).command([value], 1), tmp_path)

        assert not (tmp_path / "ran").exists(), value


@pytest.mark.parametrize(
    "line, command",
    [
        ("x[$(({}))]=1", "x[$((3))]=1"),
        ("[[ $(({})) -gt 1 ]]", "[[ $((3)) -gt 1 ]]"),
        ("echo hi >&$(({}))", "echo hi >&$((3))"),
    ],
)
def test_a_whole_number_may_stand_where_other_values_are_refused(line: str, command: str) -> None:
    assert read_line(line).command(["3"], 1) == command


def test_braces_behind_a_backslash_are_no_mark() -> None:
    assert read_line(r"find {} -exec ls \{} \;").command(["a"], 1) == r"find 'a' -exec ls \{} \;"


@pytest.mark.parametrize("line, command", [("seq $(({} * 10))", "seq $((3 * 10))"), ("((x = {}))", "((x = 3))")])
def test_a_whole_number_may_stand_where_the_shell_computes(line: str, command: str) -> None:
    assert read_line(line).command(["3"], 1) == command


@pytest.mark.parametrize("value", ["x", "", "a[$(id)]", "1 2", "1;2", "٣", "1\n"])
def test_nothing_else_may_stand_where_the_shell_computes(value: str) -> None:
    with pytest.raises(BadInput, match=r"\{\} stands where the shell computes"):
        read_line("echo $(({} + 1))").command([value], 1)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_negative_number_is_computed_with(shell: str) -> None:
    command = read_line("echo $((5-{}))").command(["-3"], 1)

    assert _printed(shell, command) == b"8\n"


def _printed(shell: str, command: str) -> bytes:
    done = _run(shell, command, Path.cwd())
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def _run(shell: str, command: str, folder: Path) -> "subprocess.CompletedProcess[bytes]":
    # Little processor time and no more: lines made at random may loop.
    return subprocess.run(
        [shell, "-c", command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "v": "V", "LC_ALL": "C.UTF-8"},
        timeout=60,
    )
