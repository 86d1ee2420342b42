"""Masking: what of a job those may not see who may only read or submit: values of variables that hold secrets.

Whoever may operate could read them anyway, by a job that prints its environment.
"""

from queuectl.model.token import Role
from queuectl.model.visible import shown_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.web.visitor import Visitor

    Shape = dict[str, object]


def seen_by(visitor: "Visitor", shape: "Shape") -> "Shape":
    """Return a job, or the fields of one, as a visitor may see it."""
    env = shape.get("env")
    if visitor.may(Role.OPERATE) or not isinstance(env, dict):
        return shape
    return {**shape, "env": {name: shown_value(name, str(value)) for name, value in env.items()}}
