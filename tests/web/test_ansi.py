"""What a terminal would make of an output, as the log shows it: read by static/js/ansi.js in a real browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.web.serving import Site

pytestmark = pytest.mark.needs("chromium")

RED: dict[str, object] = {"foreground": 1, "background": None, "flags": []}
# What is printed, and the runs of each line: the text, and how it looks where it is not plain.
CASES: list[tuple[str, list[list[object]]]] = [
    ("", [[]]),
    ("one\ntwo\n", [["one"], ["two"], []]),
    ("one\r\ntwo", [["one"], ["two"]]),
    ("\x1b[31mred\x1b[0m plain", [[("red", RED), " plain"]]),
    ("\x1b[31mred\nstill\x1b[m", [[("red", RED)], [("still", RED)]]),
    ("\x1b[1;4;91mx", [[("x", {"foreground": 9, "background": None, "flags": ["bold", "underline"]})]]),
    ("\x1b[1mx\x1b[22my", [[("x", {"foreground": None, "background": None, "flags": ["bold"]}), "y"]]),
    ("\x1b[38;5;9mx", [[("x", {"foreground": 9, "background": None, "flags": []})]]),
    ("\x1b[38;5;208mx", [[("x", {"foreground": [255, 135, 0], "background": None, "flags": []})]]),
    ("\x1b[48;5;244mx", [[("x", {"foreground": None, "background": [128, 128, 128], "flags": []})]]),
    ("\x1b[38;2;1;2;3mx", [[("x", {"foreground": [1, 2, 3], "background": None, "flags": []})]]),
    ("\x1b[38:2::1:2:3mx", [[("x", {"foreground": [1, 2, 3], "background": None, "flags": []})]]),
    ("\x1b[38;2;1;2;3;1mx", [[("x", {"foreground": [1, 2, 3], "background": None, "flags": ["bold"]})]]),
    ("\x1b[38;2;999;0;0mx", [["x"]]),
    ("\x1b[38;5mx", [["x"]]),
    ("\x1b[31m\x1b[39mx", [["x"]]),
    ("\x1b[4:0;7mx", [[("x", {"foreground": None, "background": None, "flags": ["inverse"]})]]),
    ("\x1b[>4;1mx\x1b[?25lx", [["xx"]]),
    ("10%\r50%\r100%\n", [["100%"], []]),
    ("longer\rab", [["abnger"]]),
    ("longer\r\x1b[Kab", [["ab"]]),
    ("longer\x1b[2K\rab", [["ab"]]),
    ("abc\b\bX", [["aXc"]]),
    ("\x1b[31mabc\x1b[0m\rX", [["X", ("bc", RED)]]),
    ("\x1b]0;title\x07x", [["x"]]),
    ("\x1b]0;title\x1b\\x", [["x"]]),
    ("\x1b]8;;javascript:alert(1)\x1b\\link\x1b]8;;\x1b\\", [["link"]]),
    ("\x1b]52;c;aGk=\x07x\x1bP1$r0m\x1b\\y\x1b_z\x1b\\", [["xy"]]),
    ("\x1b]0;never ended\nnext", [[], ["next"]]),
    ("\x1b[31never ended\nnext", [["ever ended"], ["next"]]),
    ("\x1b[2J\x1b[H\x1b[10;20Hx\x1b[6n\x1bc\x1b(B\x1b=y", [["xy"]]),
    ("a\x00b\x07c\x7fd\x85e\x9b31mf", [["abcd"], ["e", ("f", RED)]]),
    ("\x9d0;title\x9cx", [["x"]]),
    ("a\tb\vc\fd", [["a\tb"], ["c"], ["d"]]),
    ("\u202eabc\u2066d", [["<U+202E>abc<U+2066>d"]]),
    ("<b onclick=alert(1)>&amp;", [["<b onclick=alert(1)>&amp;"]]),
    ("ärgerlich 🙂 日本", [["ärgerlich 🙂 日本"]]),
    ("\x1b[31m" * 3 + "x" + "\x1b[0m" * 3, [[("x", RED)]]),
]
READ = """async ([texts, size]) => {
  const { PLAIN, Screen } = await import("/static/js/ansi.js");
  return texts.map((text) => {
    const screen = new Screen();
    for (let at = 0; at < text.length; at += size) screen.feed(text.slice(at, at + size));
    return screen.lines.map((line) => {
      const whole = line.runs.reduce((sum, run) => sum + run.text.length, 0);
      if (whole !== line.length) throw new Error(`a line of ${whole} says it has ${line.length}`);
      return line.runs.map((run) => [run.text, run.style === PLAIN ? null : run.style]);
    });
  });
}"""


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    """A tab for the tests of a module that needs no scripts of a page."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("size", [1, 2, 3, 10_000])
def test_an_output_is_read_the_same_however_it_is_cut(local_site: Site, tab: Page, size: int) -> None:
    tab.goto(f"{local_site.url}/static/icon.svg")

    found = tab.evaluate(READ, [[text for text, _ in CASES], size])

    wanted = [[[_run(run) for run in line] for line in lines] for _, lines in CASES]
    assert [_joined(lines) for lines in found] == wanted


def test_colours_become_classes_and_colours_and_never_markup(local_site: Site, page: Page) -> None:
    page.goto(f"{local_site.url}/queues")

    html = page.evaluate(
        """async () => {
          const { Screen, span } = await import("/static/js/ansi.js");
          const screen = new Screen();
          screen.feed("<i>\\x1b[1;31ma\\x1b[38;2;1;2;3;48;5;4mb\\x1b[0;7mc");
          const box = document.createElement("div");
          box.append(...screen.lines[0].runs.map((run) => span(run.text, run.style)));
          return box.innerHTML;
        }"""
    )

    assert html == (
        "&lt;i&gt;"
        '<span class="t-bold t-f1">a</span>'
        '<span class="t-bold t-b4" style="color: rgb(1, 2, 3);">b</span>'
        '<span class="t-inverse t-on-ink t-on-paper">c</span>'
    )


def test_a_line_of_megabytes_and_colours_is_read_in_time(local_site: Site, tab: Page) -> None:
    tab.goto(f"{local_site.url}/static/icon.svg")

    lengths = tab.evaluate(
        """async () => {
          const { Screen, textOf } = await import("/static/js/ansi.js");
          const plain = new Screen(), coloured = new Screen(), progress = new Screen();
          plain.feed("x".repeat(4 << 20));
          coloured.feed("\\x1b[31mx\\x1b[0m".repeat(50_000));
          progress.feed("\\r\\x1b[K50%".repeat(50_000));
          return [plain, coloured, progress].map((screen) => textOf(screen.lines[0]).length);
        }"""
    )

    assert lengths == [4 << 20, 50_000, 3]


def _run(run: object) -> list[object]:
    return [run, None] if isinstance(run, str) else list(run)  # type: ignore[call-overload]


def _joined(lines: list[list[list[object]]]) -> list[list[list[object]]]:
    """Join runs that look the same: where a text was cut between two of them does not matter."""
    joined: list[list[list[object]]] = []
    for line in lines:
        runs: list[list[object]] = []
        for text, style in line:
            if runs and runs[-1][1] == style:
                runs[-1][0] = f"{runs[-1][0]}{text}"
            else:
                runs.append([text, style])
        joined.append(runs)
    return joined
