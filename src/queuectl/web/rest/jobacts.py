"""What is done to jobs over REST: to one by its name, or to many by their names or a filter, with a preview."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from queuectl.actions import acts, verbs
from queuectl.actions.edit import edit_act
from queuectl.actions.regroup import refuse_unknown_group, retry_group
from queuectl.actions.selection import Selection, group_alone, is_everything, refuse_names_with_filter
from queuectl.actions.shapes import done_shape, tally_shape
from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.checks import check_name, shown_value
from queuectl.model.edit import EDITABLE, edit_from_fields
from queuectl.store.group_views import FAILED
from queuectl.store.jobs import Filter
from queuectl.web.given import Given
from queuectl.web.rest import jobexamples as examples
from queuectl.web.rest.asking import Fields, flag, only
from queuectl.web.rest.choosing import Id, choice_of
from queuectl.web.rest.documenting import documented
from queuectl.web.visitor import Admin, Operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.actions.acts import Act
    from queuectl.model.edit import Edit
    from queuectl.store.database import Database
    from queuectl.web.rest.documenting import Documented

    Shape = dict[str, object]

MANY = ("ids", "filter", "all", "dry_run", "max")
EXTRA_EDITS = ("untags", "unset_env", "no_tags")

router = APIRouter(prefix="/jobs", tags=["jobs"])
DryRun = Annotated[bool, Query(description="say what would be done, and do nothing")]


def _one(schema: str) -> "Documented":
    return documented(answer=schema, example=examples.CANCELLED, problems=(409,))


def _many() -> "Documented":
    return documented(
        answer="jobs-acted",
        example=examples.PREVIEW,
        body="jobs-act-request",
        body_example={"filter": {"state": "dead", "queue": "images"}, "dry_run": True},
        problems=(404, 409),
    )


@router.post("/cancel", **_many())
def cancel_jobs(fields: Fields, stores: Given, visitor: Operator) -> JSONResponse:
    """Cancel jobs by ids or by a filter.

    Send `dry_run` first: it answers how many jobs are meant and in which states. Send that number as `max` then, and
    nothing is done should there be more by now. Jobs named one by one are acted on all or none.
    """
    return _act_on_many(stores.database, fields, verbs.CANCEL, visitor.name)


@router.post("/retry", **_many())
def retry_jobs(fields: Fields, stores: Given, visitor: Operator) -> JSONResponse:
    """Run jobs again, by ids or by a filter; one that names no state finds failed and dead ones alone.

    With a `group` alone its dead and cancelled jobs are retried, and if it was stopped it goes on.
    """
    act = verbs.RETRY_WITH_DEPENDENTS if flag(fields, "with_dependents") else verbs.RETRY
    return _act_on_many(stores.database, fields, act, visitor.name, more=("with_dependents",))


@router.post("/hold", **_many())
def hold_jobs(fields: Fields, stores: Given, visitor: Operator) -> JSONResponse:
    """Keep jobs from running, by ids or by a filter, until they are released."""
    return _act_on_many(stores.database, fields, verbs.HOLD, visitor.name)


@router.post("/release", **_many())
def release_jobs(fields: Fields, stores: Given, visitor: Operator) -> JSONResponse:
    """Let held jobs go, by ids or by a filter."""
    return _act_on_many(stores.database, fields, verbs.RELEASE, visitor.name)


@router.post("/delete", **_many())
def delete_jobs(fields: Fields, stores: Given, visitor: Admin) -> JSONResponse:
    """Remove jobs and their history, by ids or by a filter; running ones are passed by."""
    return _act_on_many(stores.database, fields, verbs.DELETE, visitor.name)


@router.post("/{id}/cancel", **_one("cancel"))
def cancel_job(name: Id, stores: Given, visitor: Operator, dry_run: DryRun = False) -> JSONResponse:
    """Cancel a job: a waiting one at once, a running one as soon as its worker has stopped it."""
    return _act_on_one(stores.database, name, verbs.CANCEL, visitor.name, is_trial=dry_run)


@router.post("/{id}/retry", **_one("retry"))
def retry_job(
    name: Id,
    stores: Given,
    visitor: Operator,
    with_dependents: Annotated[bool, Query(description="run all that run after it again, too")] = False,
    dry_run: DryRun = False,
) -> JSONResponse:
    """Run a job again now: a waiting one skips its wait, a finished one gets a fresh life."""
    act = verbs.RETRY_WITH_DEPENDENTS if with_dependents else verbs.RETRY
    return _act_on_one(stores.database, name, act, visitor.name, is_trial=dry_run)


@router.post("/{id}/hold", **_one("hold"))
def hold_job(name: Id, stores: Given, visitor: Operator, dry_run: DryRun = False) -> JSONResponse:
    """Keep a job from running until it is released."""
    return _act_on_one(stores.database, name, verbs.HOLD, visitor.name, is_trial=dry_run)


@router.post("/{id}/release", **_one("release"))
def release_job(name: Id, stores: Given, visitor: Operator, dry_run: DryRun = False) -> JSONResponse:
    """Let a held job go."""
    return _act_on_one(stores.database, name, verbs.RELEASE, visitor.name, is_trial=dry_run)


@router.delete("/{id}", **_one("delete"))
def delete_job(name: Id, stores: Given, visitor: Admin, dry_run: DryRun = False) -> JSONResponse:
    """Remove a job and its history; a running one is refused."""
    return _act_on_one(stores.database, name, verbs.DELETE, visitor.name, is_trial=dry_run)


@router.patch(
    "/{id}",
    **documented(
        answer="edit",
        example=examples.EDITED,
        body="job-edit-request",
        body_example={"priority": 10, "tags": ["urgent"], "timeout": "default"},
        problems=(409,),
    ),
)
def edit_job(name: Id, fields: Fields, stores: Given, visitor: Operator, dry_run: DryRun = False) -> JSONResponse:
    """Change a job: a waiting one in everything, a finished one in all but its time, a running one's tags alone.

    `tags` and `env` are added to what it has; the word `none` takes a thing back.
    """
    act = edit_act(_edit_of(only(fields, [*EDITABLE, *EXTRA_EDITS])))
    return _act_on_one(stores.database, name, act, visitor.name, is_trial=dry_run)


def _act_on_one(database: "Database", name: str, act: "Act", who: str, *, is_trial: bool) -> JSONResponse:
    [done] = acts.act_on_each(database, [name], act, who=who, is_trial=is_trial)
    return JSONResponse(done_shape(done, is_trial=is_trial))


def _act_on_many(
    database: "Database", fields: "Shape", act: "Act", who: str, *, more: "Sequence[str]" = ()
) -> JSONResponse:
    chosen = choice_of(only(fields, [*MANY, *more]))
    is_trial, most = flag(fields, "dry_run"), read_most(fields)
    if flag(fields, "all") != is_everything(chosen):
        if is_everything(chosen):
            raise BadInput("which jobs?", hint='give "ids", a "filter", or "all": true')
        raise BadInput('"all" stands alone', hint="leave it out: the ids or the filter say which jobs are meant")
    refuse_names_with_filter(chosen)
    if chosen.is_by_name:
        return JSONResponse(_on_named(database, chosen, act, who, most, is_trial=is_trial))
    group = group_alone(chosen)
    if group is not None:
        database.read(lambda tx: refuse_unknown_group(tx, group))
        if act is verbs.RETRY:
            chosen = Selection(wanted=Filter(group=group, states=FAILED))
    found = acts.choose(database, act, chosen)
    acts.refuse_more(len(found.seqs), most)
    if is_trial:
        states = {state.value: number for state, number in sorted(found.counts.items())}
        shape = tally_shape(len(found.seqs), found.passed, is_trial=True)
        return JSONResponse({**shape, "states": states, "samples": list(found.samples)})
    if group is not None and act is verbs.RETRY:
        retried = retry_group(database, group, who=who, most=most)
        return JSONResponse(tally_shape(retried.count, retried.refused))
    tally = acts.act_on_many(database, found, who=who)
    return JSONResponse(tally_shape(tally.count, tally.passed))


def _on_named(
    database: "Database", chosen: Selection, act: "Act", who: str, most: int | None, *, is_trial: bool
) -> "Shape":
    """Act on jobs named one by one, all or none."""
    acts.refuse_more(len(chosen.names), most)
    done = acts.act_on_each(database, chosen.names, act, who=who, is_trial=is_trial)
    told = [done_shape(each, is_trial=is_trial) for each in done]
    return {**tally_shape(len(done), {}, is_trial=is_trial), "jobs": told}


def read_most(fields: "Shape") -> int | None:
    """Return how many jobs a body agrees to at most; None: any number."""
    most = fields.get("max")
    if most is None:
        return None
    if type(most) is not int or most < 0:
        raise BadInput(f"max is to be a whole number, not {shown_value(most)}")
    return most


def _edit_of(fields: "Shape") -> "Edit":
    given = {name: value for name, value in fields.items() if name not in EXTRA_EDITS}
    untags, unset_env = (fields.get(name) or [] for name in ("untags", "unset_env"))
    for name, listed in (("untags", untags), ("unset_env", unset_env)):
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            raise BadInput(f"{name} is to be a list of texts, not {shown_value(listed)}")
    assert isinstance(untags, list)
    assert isinstance(unset_env, list)
    return edit_from_fields(
        given,
        wall_ms(),
        unset_env=unset_env,
        untags=[check_name("tag", tag) for tag in untags],
        has_no_tags=flag(fields, "no_tags"),
    )
