"""Keeps nodes as JSON, in addition to their decoded fields, for extenders that are sent whole nodes.

A node has 5 to 20 KB, so 5,000 of them take up to 100 MB; only kubelets and administrators write them. Each version of
a node has its own bytes, so they never differ from the node that was decided on.
"""

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.objects import Node
from scheduler.api.wording.folding import unfolded

_members: Decoder[dict[str, msgspec.Raw]] = Decoder(dict[str, msgspec.Raw])


def keep_raw(node: Node, raw: msgspec.Raw) -> None:
    """Give a node its JSON, as an item of a list has it: without kind and version, which kube-scheduler does not send.

    Raises Unreadable.
    """
    members = _members.decode(raw)
    for name in ("kind", "apiVersion"):
        members.pop(name, None)
    try:
        whole = unfolded(msgspec.json.encode(members))
    except ValueError as error:
        raise Unreadable(error) from error
    msgspec.structs.force_setattr(node, "raw_json", whole)
