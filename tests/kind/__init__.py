"""A kind cluster that works wherever Docker or podman runs, and Loadmaster on it as users install it.

`make kind` makes it and leaves it; `make kind-test` makes one if there is none and runs the tests of this folder:

    engine.py        Docker or podman if one answers, otherwise a Docker engine of our own
    node_image.py    kindest/node if it can be pulled, otherwise the same made from Debian's packages and Go modules
    image.py         Loadmaster's image, by `docker build`
    cluster.py       three nodes in three zones, the images on them, the chart installed

README.md says what differs where nothing can be pulled.
"""
