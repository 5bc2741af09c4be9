"""HTTP services other than the API's objects: reviews, the scheduler's own Service, extenders.

Their meaning is decided elsewhere: `scheduler.serve.access`, `scheduler.commands` and `scheduler.extenders`.
"""
