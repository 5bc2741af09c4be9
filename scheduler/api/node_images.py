"""Container images that many nodes report, kept once for all of them.

A kubelet reports up to 50 images with their names, 20 KiB as decoded, and reports them again in each status. Nodes of a
cluster run the same images, so the structs of one node serve all others; and a report that changes nothing gets the
same tuple as the one before, so comparing them is cheap.
"""

from typing import Final

import msgspec

from scheduler.api.objects import ContainerImage, Node
from scheduler.api.recent_caches import RecentCache

MAX_BYTES: Final = 8 << 20

_images: Final[RecentCache[ContainerImage, ContainerImage]] = RecentCache("container images", MAX_BYTES)


def share_images(node: Node, known: Node | None) -> None:
    """Replace the images of a node that was just decoded by equal ones of `known`, its last version, or of any node."""
    status = node.status
    if not status.images:
        return
    if known is not None and known.status.images == status.images:
        images = known.status.images
    else:
        images = tuple(_images.get(image) or _images.put(image, image) for image in status.images)
    # The decoded one is not shared yet.
    msgspec.structs.force_setattr(status, "images", images)
