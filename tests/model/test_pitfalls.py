"""Pitfalls: who writes a template is warned of values that another shell reads again."""

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
        'eval "ls {}"',
        "ssh host rm {}",
        "ssh host 'rm {}'",
    ],
)
def test_a_value_that_another_shell_reads_is_warned_of(line: str) -> None:
    [warning] = pitfalls(read_line(line))

    assert "is read again by another shell" in warning


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
    ],
)
def test_other_lines_are_not_warned_of(line: str) -> None:
    assert pitfalls(read_line(line)) == []


@pytest.mark.parametrize("mark", ["{%}", "{= s/a/b/ =}", "{..}", "{/..}", "{+/}", "{##}"])
def test_a_replacement_string_of_gnu_parallel_that_is_not_known_is_warned_of(mark: str) -> None:
    for template in (read_line(f"echo '{mark}' {{}}"), read_words(["echo", mark, "{}"])):
        [warning] = pitfalls(template)

        assert warning.startswith(f"{mark} stays as it is")
