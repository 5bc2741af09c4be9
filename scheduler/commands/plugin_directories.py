"""The option that names directories of plugins; separate from the loading, so that `--help` need not load it."""

import argparse


def add_plugin_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `--plugin-dir`."""
    parser.add_argument(
        "--plugin-dir",
        action="append",
        default=[],
        metavar="DIR",
        dest="plugin_directories",
        help="a directory with plugins of your own, a Python file each; can be given several times",
    )
