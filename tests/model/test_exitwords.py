"""Exit words: well-known ends are explained, and nothing else."""

import pytest

from queuectl.model.exitwords import exit_words


@pytest.mark.parametrize(
    "error, words",
    [
        ("exit code 124", "timeout(1) stopped it"),
        ("exit code 126", "cannot be executed"),
        ("exit code 127", "the command was not found"),
        ("exit code 127; not retried (retry_on 75)", "the command was not found"),
        (
            "exit code 137",
            "SIGKILL ended what the shell ran: something ended it by force; often the kernel, when memory",
        ),
        ("exit code 143", "SIGTERM ended what the shell ran: something asked it to stop"),
        ("exit code 131", "SIGQUIT ended what the shell ran"),
        ("killed by SIGKILL", "often the kernel, when memory ran out"),
        ("killed by SIGSEGV", "a fault in the program"),
    ],
)
def test_a_well_known_end_is_explained(error: str, words: str) -> None:
    assert words in exit_words(error)


@pytest.mark.parametrize(
    "error", [None, "", "exit code 1", "exit code 23", "exit code 1270", "exit code 128", "exit code 200", "lost"]
)
def test_what_a_program_means_by_itself_is_left_to_it(error: str | None) -> None:
    assert exit_words(error) == ""
