"""queuectl token."""

import json
import shlex

import pytest

from tests.program import Cli


def test_a_token_is_made_listed_and_revoked(cli: Cli) -> None:
    done = cli.run("token", "add", "ci", "--role", "submit", "--expires", "30d")
    secret = done.stdout.strip()

    assert done.stdout == f"{secret}\n"  # the secret alone, so that it can go into a file
    assert "shown once" in done.stderr
    listed = cli.ok("token", "list")
    assert "NAME" in listed
    assert "ci" in listed
    assert secret not in listed
    [token] = cli.json("token", "list")
    assert (token["name"], token["role"], token["expired"]) == ("ci", "submit", False)
    assert (token["last_used_at"], token["last_used_from"]) == (None, None)
    assert secret not in json.dumps(token)
    assert cli.ok("token", "revoke", "ci") == "ci is revoked\n"
    assert cli.json("token") == []
    assert [act["action"] for act in cli.json("audit")] == ["token revoke", "token add"]


@pytest.mark.parametrize(
    "words, code, said",
    [
        ("add ci", 2, "--role missing"),
        ("add ci --role reed", 2, "did you mean 'read'"),
        ("add 'a b' --role read", 2, "bad token"),
        ("add ci --role read --expires soon", 2, "--expires"),
        ("add ci --role read --expires 0", 2, "no time"),
        ("revoke nobody", 3, "no token 'nobody'"),
        ("add", 2, "NAME"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(local: Cli, words: str, code: int, said: str) -> None:

    done = local.run("token", *shlex.split(words))

    assert done.returncode == code
    assert said in done.stderr
    assert done.stdout == ""


def test_a_name_that_is_taken_is_refused(local: Cli) -> None:
    local.ok("token", "add", "ci", "--role", "read")

    done = local.run("token", "add", "ci", "--role", "admin")

    assert done.returncode == 6
    assert "queuectl token revoke ci" in done.stderr
