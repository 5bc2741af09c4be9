"""Loadmaster with a plugin that is not its own: the program of docs/plugins.md."""

import sys

from team_budget import TeamBudget

from scheduler.__main__ import main

sys.exit(main(plugins={"TeamBudget": TeamBudget}))
