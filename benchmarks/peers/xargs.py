"""xargs: the unit of every drain. No queue, no memory of what it ran."""

from benchmarks.peers.shell_tools import LIST_JOBS, ListPeer, ListRoom


class XargsRoom(ListRoom):
    """A list for xargs."""

    def working(self) -> list[list[str]]:
        """Run each line through sh."""
        return [["xargs", "-P", str(self.workers), "-I{}", "sh", "-c", "{}"]]


class Xargs(ListPeer):
    """xargs -P N."""

    name = "xargs"
    program, package = "xargs", "findutils"
    durability = "none: nothing is kept"
    durability_tag = "nothing kept"
    drain_jobs = LIST_JOBS
    room_class = XargsRoom
