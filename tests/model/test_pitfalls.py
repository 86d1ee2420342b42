"""Pitfalls: who writes a template is warned of values that another shell reads again."""

import time

import pytest

from queuectl.model.pitfalls import pitfalls
from queuectl.model.template import read_line, read_words


@pytest.mark.parametrize(
    "line",
    [
        "sh -c 'echo {}'",
        'bash -c "echo {}"',
        'bash -c "{}"',
        "/bin/bash -e -c 'cd x; ls {.}'",
        "cd x && sh -ec 'ls {}'",
        "sh -c {}",
    ],
)
def test_a_value_that_another_shell_reads_is_warned_of(line: str) -> None:
    [warning] = pitfalls(read_line(line))

    assert "is read again by another shell" in warning


@pytest.mark.parametrize("line", ["ssh host rm {}", "ssh host 'rm {}'", "cd x && ssh host rm"])
def test_a_value_that_another_host_reads_is_warned_of_as_it_is_written(line: str) -> None:
    [warning] = pitfalls(read_line(line).for_lists(1))

    assert warning.startswith("{} is read again by the shell on the other host")
    assert "printf '%s\\0' {} | ssh HOST 'xargs -0 COMMAND'" in warning


@pytest.mark.parametrize(
    "builtin, lines",
    {
        "eval": ["eval {}", "eval echo {}", 'eval "cd x; ls {}"', "x=1; eval 'cd x; ls {}'",
                 "if ! eval ls {}; then :; fi", "eval 2>/dev/null ls {}", "command eval {}"],
        "trap": ["trap {} EXIT", "trap 'rm {}' EXIT", 'trap "rm {}" EXIT'],
        "let": ["let {}", "cd x && let x={}"],
        "declare": ["declare -i n={}", "declare -x -a n={}", "declare {}", 'declare "{}=1"'],
        "typeset": ["typeset -i n={}", "typeset {}=1"],
        "local": ["f() { local -i n={}; }"],
        "export": ["export {}=1", "export {}"],
        "readonly": ["readonly x{}=1"],
        "read": ["read {} </dev/null", "while read -r a {}; do :; done"],
        "unset": ["unset {}", 'unset "x[{}]"'],
        "printf": ["printf -v {} x"],
        "test": ["test -v {}", "test {} -lt 3", 'test 3 -ge "{}"'],
        "[": ["[ -v {} ]", "[ {} -eq 1 ]", "if [ 1 -ne {} ]; then :; fi"],
        "PS4": ["PS4={} sh -x run"],
        "BASH_ENV": ["BASH_ENV={} bash run"],
    }.items(),
)  # fmt: skip
def test_a_value_that_the_shell_evaluates_is_warned_of(builtin: str, lines: list[str]) -> None:
    for line in lines:
        [warning] = pitfalls(read_line(line).for_lists(1))

        assert warning.startswith(f"{{}} is read again by {builtin}, "), line


@pytest.mark.parametrize(
    "line",
    [
        "sh -c 'echo \"$1\"' sh {}",
        'sh -c \'echo "$1"\' sh "{}"',
        'bash script.sh "{}"',
        "grep -c 'x{}' {}",
        'wc -c "{}"',
        "ssh host ls | grep {}",
        "awk '{print $1}' {}",
        "echo '{a,b}' {} {.} {#}",
        "publish {}",
        "export X={} && declare y={}",
        "while read line; do echo $line; done <{}",
        'eval "$x" >{}; ls {}',
        "trap : EXIT; unset x; ls {}",
        "[ -f {} ] && [ {} = x ] && [ $(wc -l <{}) -gt 3 ]",
        "[ 1 -eq $(({})) ]",
        "printf %s {}",
        "echo eval {}",
        "printf '%s\\0' {} | ssh host 'xargs -0 rm --'",
    ],
)
def test_other_lines_are_not_warned_of(line: str) -> None:
    assert pitfalls(read_line(line)) == []


def test_a_long_line_is_looked_through_at_once() -> None:
    began = time.process_time()

    pitfalls(read_line("eval " + "'a' \"b\" c " * 2000 + "; ls {}"))

    assert time.process_time() - began < 2


@pytest.mark.parametrize("mark", ["{%}", "{= s/a/b/ =}", "{..}", "{/..}", "{+/}", "{##}"])
def test_a_replacement_string_of_gnu_parallel_that_is_not_known_is_warned_of(mark: str) -> None:
    for template in (read_line(f"echo '{mark}' {{}}"), read_words(["echo", mark, "{}"])):
        [warning] = pitfalls(template)

        assert warning.startswith(f"{mark} stays as it is")
