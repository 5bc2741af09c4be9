"""How kube-scheduler 1.36, which runs beside Loadmaster here, words messages otherwise than 1.37."""


def as_newer(message: str) -> str:
    """A message of either, as 1.37 says it: DynamicResources has nothing to add to preemption's text."""
    return message.replace(" no new claims to deallocate,", "")
