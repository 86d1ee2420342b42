"""Look after tokens: what lets people and programs in where `queuectl serve` is reached over a network.

A token has one role: read (see everything), submit (add jobs, too), operate (act on jobs, queues, workers and
schedules, too) or admin (everything). Its secret is printed once and stored as a hash alone.
"""

from queuectl.actions import tokens as acts
from queuectl.cli.parser import add_verbs
from queuectl.cli.store import open_store, who
from queuectl.cli.text import moment, note, print_json, safe, table
from queuectl.model.checks import as_duration, check_name
from queuectl.model.token import Role, token_shape
from queuectl.model.units import DURATION_HELP
from queuectl.store import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser

EXAMPLES = """\
  queuectl token add ci --role submit --expires 30d
  queuectl token list
  queuectl token revoke ci
"""
_ADD_EXAMPLES = """\
  queuectl token add anna --role admin
  queuectl token add ci --role submit --expires 30d
  queuectl token add screen --role read > token.txt

Use it in a browser (/login) or as: curl -H "Authorization: Bearer $(cat token.txt)" ...
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the verbs and their arguments."""
    verbs = add_verbs(
        parser,
        {
            "list": ("list tokens and when each was last used", "  queuectl token list --json", run_list),
            "add": ("make a token and print its secret, this once", _ADD_EXAMPLES, run_add),
            "revoke": ("remove a token; who is logged in with it is out", "  queuectl token revoke ci", run_revoke),
        },
        default="list",
    )
    for verb in ("add", "revoke"):
        verbs[verb].add_argument("name", metavar="NAME", help="what it is called, here and in the audit trail")
    verbs["add"].add_argument(
        "--role", choices=[role.value for role in Role], required=True, help="what it lets its bearer do"
    )
    verbs["add"].add_argument(
        "--expires", metavar="DURATION", help=f"how long it is good for (default: until revoked): {DURATION_HELP}, 30d"
    )


def run_list(args: "Args") -> int:
    """Print every token; never a secret, which nobody knows any more."""
    known, now = open_store(args).read(lambda tx: (tokens.all_tokens(tx), tx.now))
    if args.json:
        for token in known:
            print_json(token_shape(token, now))
        return 0
    rows = [
        (
            token.name,
            token.role.value,
            moment(token.created_at, now),
            safe(token.created_by),
            "never" if token.expires_at is None else "expired" if token.is_over(now) else moment(token.expires_at, now),
            "never" if token.last_used_at is None else moment(token.last_used_at, now),
            safe(token.last_used_from or "-"),
        )
        for token in known
    ]
    table(("NAME", "ROLE", "CREATED", "BY", "EXPIRES", "LAST USED", "FROM"), rows)
    return 0


def run_add(args: "Args") -> int:
    """Make a token and print its secret."""
    name = check_name("token", args.name)
    lasts_ms = None if args.expires is None else as_duration("--expires", args.expires)
    token, secret = acts.add_token(open_store(args), name, args.role, lasts_ms=lasts_ms, who=who())
    if args.json:
        print_json({**token_shape(token, token.created_at), "token": secret})
        return 0
    print(secret)
    note(f"token {name} ({token.role}): this is shown once; keep it where only its user can read it")
    return 0


def run_revoke(args: "Args") -> int:
    """Remove a token."""
    name = check_name("token", args.name)
    acts.revoke_token(open_store(args), name, who=who())
    if args.json:
        print_json({"token": name, "revoked": True})
    else:
        print(f"{name} is revoked")
    return 0
