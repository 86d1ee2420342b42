"""List, get, set and unset settings. They are stored in the database, so all workers of a fleet see the same."""

import os

from queuectl import settings
from queuectl.actions import control
from queuectl.cli.parser import add_verbs
from queuectl.cli.store import open_store, who
from queuectl.cli.text import note, print_json, table
from queuectl.model.units import DURATION_HELP, SIZE_HELP
from queuectl.store import config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser

EXAMPLES = f"""\
  queuectl config list
  queuectl config get max_retries
  queuectl config set backoff-base 1.5
  queuectl config set job_timeout 1h30m
  queuectl config unset backoff_base

durations: {DURATION_HELP}
sizes: {SIZE_HELP}
An environment variable such as QUEUECTL_MAX_RETRIES=5 overrides what is stored.
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the verbs and their arguments."""
    verbs = add_verbs(
        parser,
        {
            "list": (
                "show every setting: value, source, default and meaning",
                "  queuectl config list",
                run_list,
            ),
            "get": ("print the value in force", "  queuectl config get max_retries", run_get),
            "set": ("store a value", "  queuectl config set max_retries 5", run_set),
            "unset": (
                "forget a stored value; the default holds again",
                "  queuectl config unset max_retries",
                run_unset,
            ),
        },
        default="list",
    )
    for name in ("get", "set", "unset"):
        verbs[name].add_argument("key", metavar="KEY", help="the setting, with '-' or '_'")
    verbs["set"].add_argument("value", metavar="VALUE", help="its value")


def run_list(args: "Args") -> int:
    """Print every setting."""
    rows = settings.setting_shapes(open_store(args).read(config.stored), os.environ)
    if args.json:
        for row in rows:
            print_json(row)
        return 0
    table(("SETTING", "VALUE", "SOURCE", "DEFAULT", "MEANING"), [tuple(row.values()) for row in rows])
    return 0


def run_get(args: "Args") -> int:
    """Print one value."""
    name = settings.normal_key(args.key)
    found = settings.setting_shape(name, open_store(args).read(config.stored), os.environ)
    if args.json:
        print_json(found)
    else:
        print(found["value"])
    return 0


def run_set(args: "Args") -> int:
    """Store one value."""
    key, stored = control.set_setting(open_store(args), args.key, args.value, who=who())
    if args.json:
        print_json({"key": key, "value": stored})
    else:
        print(f"{key} = {stored}")
    variable = f"{settings.ENVIRONMENT_PREFIX}{key.upper()}"
    if variable in os.environ:
        note(f"warning: {variable} is set here and overrides it")
    return 0


def run_unset(args: "Args") -> int:
    """Forget one value."""
    key = settings.setting_key(args.key)
    was_stored = control.unset_setting(open_store(args), key, who=who())
    default = settings.shown(key, settings.SETTINGS[key].default)
    if args.json:
        print_json({"key": key, "value": default, "was_stored": was_stored})
    else:
        print(f"{key} = {default} (default)" + ("" if was_stored else "; it was not stored"))
    return 0
