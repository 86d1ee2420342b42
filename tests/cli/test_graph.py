"""graph: the drawing, Graphviz, JSON; and what show, why, list and enqueue say of jobs that run after others."""

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import pytest

from queuectl.cli.graph import LABEL_WIDTH
from queuectl.cli.text import short
from tests.cli.terminal import on_terminal
from tests.program import Cli

EVIL = 'echo \x1b]0;owned\x07 "quoted" \\n back\\slash &lt; <b> $x\nsecond line\t€'


def batch(cli: Cli, *jobs: Mapping[str, object]) -> None:
    """Add jobs from a file."""
    path = Path(cli.folder) / "batch.jsonl"
    path.write_text("".join(f"{json.dumps({'command': 'true', 'max_retries': 0, **job})}\n" for job in jobs))
    cli.ok("enqueue", "--from", str(path))


def build(cli: Cli) -> None:
    """Add jobs of which one is needed by two, and both of these by a third; the file names the last one first."""
    batch(
        cli,
        {"id": "report", "command": "./report.sh", "after": ["clean", "any:stats"]},
        {"id": "fetch", "command": "./fetch.sh"},
        {"id": "clean", "command": "./clean.sh", "after": "fetch"},
        {"id": "stats", "command": "./stats.py", "after": "fetch"},
        {"id": "tell", "command": "./tell.sh", "after": "fail:clean"},
    )


def test_a_graph_is_drawn_as_a_tree_each_job_once(cli: Cli) -> None:
    build(cli)

    assert (
        cli.ok("graph", "clean")
        == """\
  fetch             pending     ./fetch.sh
* ├─ clean          blocked     ./clean.sh
  │  ├─ report      blocked     ./report.sh
  │  └─ fail: tell  blocked     ./tell.sh
  └─ stats          blocked     ./stats.py
     └─ any: report (see above)
"""
    )


def test_one_side_is_drawn_when_asked_for(local: Cli) -> None:
    build(local)

    assert re.findall(r"[a-z]+(?=  )", local.ok("graph", "clean", "--up")) == ["fetch", "pending", "clean", "blocked"]
    assert "stats" not in local.ok("graph", "clean", "--down")
    assert "report" in local.ok("graph", "clean", "--down")


def test_what_failed_and_what_it_took_along_is_seen(local: Cli) -> None:
    batch(local, {"id": "p", "command": "false"}, {"id": "c", "after": "p"}, {"id": "d", "after": "fail:c,any:p"})

    local.drain()

    assert (
        local.ok("graph", "d")
        == """\
  p              dead        false
  ├─ broken: c   cancelled   true
* │  └─ fail: d  completed   true
  └─ any: d (see above)
"""
    )


def test_a_job_that_is_kept_below_one_that_failed_is_marked(local: Cli) -> None:
    batch(
        local,
        {"id": "p", "command": "false"},
        {"id": "k", "after": "p", "on_dead_dependency": "keep"},
        {"id": "f", "after": "fail:k"},
    )

    local.drain()

    assert (
        local.ok("graph", "p")
        == """\
* p              dead        false
  └─ kept: k     blocked     true
     └─ fail: f  blocked     true
"""
    )


def test_a_wide_fan_is_summed_up_and_said_so(local: Cli) -> None:
    batch(local, {"id": "hub"}, *({"after": "hub"} for _ in range(120)))

    done = local.run("graph", "hub")

    assert len(done.stdout.splitlines()) == 22
    assert done.stdout.endswith("  └─ and 100 more: 100 blocked\n")
    assert done.stderr == "21 jobs shown, others left out; see more with --limit 2000\n"
    assert len(local.ok("graph", "hub", "--limit", "2000").splitlines()) == 121


def test_of_a_wide_join_the_rest_is_told_below_the_job(local: Cli) -> None:
    parents = [f"p{number}" for number in range(50)]
    batch(local, *({"id": name} for name in parents), {"id": "join", "after": parents})

    assert "(after 30 more: 30 pending)" in local.ok("graph", "join")


def test_a_long_chain_goes_on_at_the_margin(local: Cli) -> None:
    batch(local, {"id": "j0"}, *({"id": f"j{number}", "after": f"j{number - 1}"} for number in range(1, 30)))

    lines = local.ok("graph", "j29").splitlines()

    assert max(map(len, lines)) < 80
    assert [line.split()[-3] for line in lines if line.startswith("  j")] == ["j0", "j13", "j26"]
    assert sum("(see below)" in line for line in lines) == 2
    assert lines[-1].startswith("*")
    drawn = [name for line in lines if "see" not in line for name in re.findall(r"\bj\d+", line)]
    assert sorted(drawn) == sorted(f"j{number}" for number in range(30))


@pytest.mark.parametrize("columns", [20, 60, 200])
def test_on_a_terminal_commands_are_cut_to_its_width_and_names_are_not(local: Cli, columns: int) -> None:
    batch(local, {"id": "a-rather-long-name", "command": f"echo {'x' * 500}"})

    screen = on_terminal(local, "graph", "a-rather-long-name", columns=columns, env={"NO_COLOR": "1"}).screen

    assert "a-rather-long-name" in screen.replace("\n", "")
    assert "pending" in screen.replace("\n", "")
    assert "x" * 201 not in screen.replace("\n", "")
    if columns >= 60:
        assert all(len(line) <= columns for line in screen.splitlines())
        assert "…" in screen


def test_states_have_their_colours_on_a_terminal_and_not_in_a_pipe(local: Cli) -> None:
    batch(local, {"id": "a"})

    assert re.search(r"\x1b\[\d+mpending", on_terminal(local, "graph", "a").screen)
    assert "\x1b" not in on_terminal(local, "graph", "a", env={"NO_COLOR": "1"}).screen
    assert "\x1b" not in local.ok("graph", "a")


def test_a_hostile_command_is_shown_and_not_obeyed(local: Cli) -> None:
    batch(local, {"id": "evil", "command": EVIL})

    text = local.ok("graph", "evil")
    screen = on_terminal(local, "graph", "evil").screen

    assert r'echo \x1b]0;owned\x07 "quoted"' in text
    assert (text.count("\n"), "\x1b]" in screen, "\x07" in text) == (1, False, False)
    assert r"$x\nsecond line\t€" in text


@pytest.mark.needs("dot")
def test_graphviz_reads_what_it_is_given_and_shows_each_command_as_it_is(local: Cli) -> None:
    build(local)
    batch(local, {"id": "evil", "command": EVIL, "after": "tell"}, *({"after": "evil"} for _ in range(60)))

    source = local.ok("graph", "evil", "--dot")
    drawn = subprocess.run(["dot", "-Tsvg"], input=source, capture_output=True, text=True, timeout=60, check=True)

    assert drawn.stderr == ""
    texts = [text.text for text in ET.fromstring(drawn.stdout).iter("{http://www.w3.org/2000/svg}text")]
    assert short(EVIL, LABEL_WIDTH) in texts
    assert {"fetch", "clean", "stats", "report", "tell", "evil", "blocked", "any", "fail"} <= set(texts)
    assert "40 more: 40 blocked" in texts


def test_dot_is_made_of_numbers_and_quoted_text_alone(local: Cli) -> None:
    build(local)
    batch(local, {"id": "evil", "command": EVIL, "after": "tell"})

    lines = local.ok("graph", "evil", "--dot").splitlines()

    assert (lines[0], lines[-1]) == ("digraph queuectl {", "}")
    text = r'"(?:[^"\\]|\\.)*"'
    statement = rf"  (rankdir=LR|(node|\d+( -> \d+)?) \[(\w+=({text}|\w+)(, )?)+\]);"
    assert [line for line in lines[1:-1] if not re.fullmatch(statement, line)] == []


def test_json_has_nodes_edges_and_what_is_left_out(cli: Cli) -> None:
    build(cli)

    [found] = cli.json("graph", "stats")
    [cut] = cli.json("graph", "fetch", "--limit", "2")

    assert (found["id"], found["left_out"]) == ("stats", [])
    numbers = {node["number"]: node["id"] for node in found["nodes"]}  # type: ignore[attr-defined]
    edges = [(numbers[edge["parent"]], numbers[edge["child"]], edge["kind"], edge["is"]) for edge in found["edges"]]  # type: ignore[attr-defined]
    assert ("stats", "report", "any", "waiting") in edges
    assert len(edges) == 5
    assert {"of": 2, "which": "dependents", "count": 1, "states": {"blocked": 1}} in cut["left_out"]  # type: ignore[operator]


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["nobody"], 3, "no job 'nobody'"),
        (["a", "a"], 2, "one job at a time"),
        (["a", "--up", "--down"], 2, "two sides"),
        (["a", "--dot", "--json"], 2, "two forms"),
        (["a", "--limit", "0"], 2, "bad --limit '0'"),
        (["a", "--limit", "10001"], 2, "1 to 10000"),
        ([], 2, "which job?"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_reason(local: Cli, words: list[str], code: int, said: str) -> None:
    batch(local, {"id": "a"})

    done = local.run("graph", *words)

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_show_tells_what_a_job_runs_after_and_what_runs_after_it(cli: Cli) -> None:
    batch(
        cli,
        {"id": "p", "command": "false"},
        {"id": "q"},
        {"id": "c", "after": "p,any:q", "on_dead_dependency": "keep", "group": "g", "unique": "a key"},
        {"id": "d", "after": "fail:c"},
    )
    cli.drain()

    text = cli.ok("show", "c")
    shape = cli.job("c")

    assert "Runs after:   p (dead, waiting)\nRuns after:   any:q (completed)\nIf they fail: keep\n" in text
    assert "Then runs:    fail:d (blocked)\n" in text
    assert "Group:        g\nUnique key:   a key\n" in text
    assert shape["after"] == [
        {"id": "p", "number": 1, "state": "dead", "kind": "ok", "is": "waiting"},
        {"id": "q", "number": 2, "state": "completed", "kind": "any", "is": "satisfied"},
    ]
    assert shape["dependents"] == [{"id": "d", "number": 4, "state": "blocked", "kind": "fail", "is": "waiting"}]
    assert (shape["dependents_count"], shape["on_dead_dependency"]) == (1, "keep")


def test_show_names_a_few_and_counts_the_rest(local: Cli) -> None:
    batch(local, {"id": "hub"}, *({"after": "hub"} for _ in range(150)))

    text, shape = local.ok("show", "hub"), local.job("hub")

    assert "Then runs:    and 145 more; see: queuectl graph hub --down\n" in text
    assert (len(shape["dependents"]), shape["dependents_count"]) == (100, 150)  # type: ignore[arg-type]


def test_why_names_the_jobs_one_waits_for_and_what_to_type(cli: Cli) -> None:
    names = [f"p{number}" for number in range(7)]
    batch(cli, {"id": "done"}, *({"id": name, "delay": "1h"} for name in names), {"id": "c", "after": [*names, "done"]})
    cli.drain()

    text = cli.ok("why", "c")

    shown = "p0 (scheduled), p1 (scheduled), p2 (scheduled), p3 (scheduled), p4 (scheduled) and 2 more"
    assert text.startswith(f"Job c is blocked: it waits for 7 other jobs: {shown}\n")
    assert f"  WAIT  after        {shown}; 7 of 8 it runs after\n" in text
    assert "ends when all of them have ended\n" in text
    assert "to change it: queuectl edit c --after none\n" in text
    assert "  ok    hold         nobody holds it\n" in text
    assert "Position: none yet; it is in no line\n" in text


def test_why_tells_of_a_time_beside_the_jobs_and_of_a_hold_before_them(local: Cli) -> None:
    batch(local, {"id": "p"}, {"id": "c", "after": "p", "delay": "1h"}, {"id": "h", "after": "p", "hold": True})

    timed, held = local.ok("why", "c"), local.ok("why", "h")

    assert timed.startswith("Job c is blocked: it waits for 1 other job: p (pending)\n")
    assert re.search(r"WAIT  time         it is to run at .*, in 59m\d\ds, and not before\n", timed)
    assert held.startswith("Job h is blocked: it waits for being released: a person holds it since")
    assert "WAIT  after        p (pending)\n" in held


def test_why_says_of_a_kept_job_who_failed_and_how_to_go_on(local: Cli) -> None:
    batch(local, {"id": "p", "command": "false"}, {"id": "c", "after": "p", "on_dead_dependency": "keep"})
    local.drain()

    text = local.ok("why", "c")

    assert "it waits for p (dead), which ended otherwise than it asked; it is kept\n" in text
    remedy = "queuectl retry p (or, without it: queuectl edit c --after none); to give it up: queuectl cancel c"
    assert f"to change it: {remedy}\n" in text
    assert local.job("c")["remedy"] == remedy
    assert local.json("why", "c")[0]["remedy"] == remedy


def test_why_and_show_say_of_a_starved_job_who_took_it_along_and_what_brings_it_back(cli: Cli) -> None:
    batch(cli, {"id": "p", "command": "false"}, {"id": "c", "after": "p"}, {"id": "d", "after": "c"})
    cli.drain()

    text = cli.ok("why", "d")
    remedy = "queuectl retry p (or, without it: queuectl edit d --after none && queuectl retry d)"

    assert re.match(r"Job d is cancelled: it ended at .*: job c, which it was to run after, is cancelled\n", text)
    assert f"To bring it back: {remedy}\n" in text
    assert f"To mend it:   {remedy}\n" in cli.ok("show", "d")
    assert (cli.job("d")["remedy"], cli.json("why", "d")[0]["remedy"]) == (remedy, remedy)
    cli.ok("retry", "p")
    assert cli.job("d")["state"] == "blocked"


def test_a_job_for_the_case_of_failure_that_was_not_needed_is_not_told_to_run_the_other_again(local: Cli) -> None:
    batch(local, {"id": "p"}, {"id": "c", "after": "fail:p"})
    local.drain()

    assert local.job("c")["remedy"] == "queuectl edit c --after none && queuectl retry c"


def test_what_show_says_brings_a_job_back_does(local: Cli) -> None:
    batch(local, {"id": "p", "command": "false"}, {"id": "c", "after": "p"})
    local.drain()

    without = str(local.job("c")["remedy"]).partition(": ")[2].removesuffix(")")
    for line in without.split(" && "):
        local.ok(*line.split()[1:])
    local.drain()

    assert local.job("c")["state"] == "completed"


def test_list_finds_jobs_that_wait_for_others(local: Cli) -> None:
    batch(local, {"id": "p"}, {"id": "c", "after": "p"}, {"id": "h", "hold": True}, {"id": "d", "after": "p,c"})

    assert local.ok("list", "--state", "dependent", "-q") == "d\nc\n"
    assert local.ok("list", "--state", "dependent", "--columns", "id,waits_for").splitlines()[1].split() == ["d", "2"]
    local.ok("cancel", "--state", "dependent", "--yes")
    assert local.job("h")["state"] == "blocked"


def test_enqueue_on_a_terminal_says_what_the_job_will_wait_for(local: Cli) -> None:
    batch(local, {"id": "p"}, {"id": "q"})
    (local.folder / "more").write_text('{"command": "true", "after": "p"}\ntrue\n')

    one = on_terminal(local, "enqueue", "--after", "p,any:q", "make all").screen
    many = on_terminal(local, "enqueue", "--from", "more").screen

    assert "will run after p (pending), any:q (pending): make all" in one
    assert "2 jobs added (4-5), 1 of them to run after others" in many
