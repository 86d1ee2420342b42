"""queuectl audit: who did what, newest first."""

from tests.program import Cli


def test_acts_are_listed_newest_first_with_who_what_and_how_many(cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin="true\ntrue\n")
    cli.ok("hold", "2")

    header, hold, enqueue = cli.ok("audit").splitlines()

    assert header.split() == ["WHEN", "WHO", "ACTION", "COUNT", "WHAT"]
    assert hold.split()[3:] == ["hold", "1", "2"]
    assert enqueue.split()[3:] == ["enqueue", "2", "1", "to", "2"]


def test_acts_can_be_narrowed(cli: Cli) -> None:
    cli.enqueue("true")
    cli.ok("config", "set", "max_retries", "4")
    cli.ok("config", "unset", "max_retries")
    who = str(cli.json("audit")[0]["who"])

    assert [act["action"] for act in cli.json("audit", "--action", "config")] == ["config unset", "config set"]
    assert [act["action"] for act in cli.json("audit", "--action", "config set")] == ["config set"]
    assert [act["action"] for act in cli.json("audit", "--limit", "1")] == ["config unset"]
    assert len(cli.json("audit", "--who", who.partition("@")[0])) == 3
    assert cli.json("audit", "--who", "nobody-of-this-name") == []
    assert len(cli.json("audit", "--since", "1h")) == 3
    assert cli.json("audit", "--since", "2099-01-01") == []


def test_what_is_left_out_is_said(local: Cli) -> None:
    local.enqueue("true")
    local.enqueue("true")

    assert local.run("audit", "--limit", "1").stderr == "the newest 1 are shown; see more with --limit 10\n"
    assert local.run("audit", "--who", "nobody-of-this-name").stderr == "no such act is on record\n"
    assert local.run("audit", "--since", "soon").returncode == 2
