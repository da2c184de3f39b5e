"""The causes of losses, each declared once: the ledger, metrics and documentation follow from it."""

from __future__ import annotations

from typing import NamedTuple


class Cause(NamedTuple):
    """Why something due was lost: a clause to follow `because`.

    `of_copies`: whether copies are lost on their way from broker to broker; `of_users`: from the broker to the user.
    """

    why: str
    of_copies: bool = False
    of_users: bool = False


CAUSES = {
    "joining": Cause("the broker's join of the tree was still under way, or it had left"),
    "unreachable": Cause("no links led from the root to the broker"),
    "queue_full": Cause("a broker's queue, or its buffer for a link, was full", of_copies=True),
    "link": Cause("a link lost the message", of_copies=True),
    "crashed": Cause("a broker was down, or crashed with the message", of_copies=True),
    "partitioned": Cause("a link was cut", of_copies=True),
    "expired": Cause("a copy had been sent as often, or for as long, as allowed", of_copies=True),
    "hop_limit": Cause("copies had reached the hop limit"),
    "offloaded": Cause("the topic was offloaded and the best-effort channel failed"),
    "slow_client": Cause("the broker's buffer for the user was full", of_users=True),
    "leg": Cause("the way to the user lost a message of quality of service 0", of_users=True),
    "disconnected": Cause("the user was disconnected, and no session kept them", of_users=True),
    "session_expired": Cause("the session had expired before the user returned", of_users=True),
    "offline_queue_full": Cause("the session of a user who was away was full", of_users=True),
    "message_expired": Cause("they had reached the maximum age in a session", of_users=True),
}
"""The causes of losses. Of several by which copies of one publication are lost, the first here is that of the pair."""
