"""Plays the scenes on a cluster and watches over the scheduler meanwhile."""

import time
from dataclasses import dataclass
from typing import Final

from tests.controlplane import Component, ProcessError
from tests.controlplane.sync import Client
from tests.demo.feed import Feed
from tests.demo.model import Model
from tests.demo.scenes import Scene
from tests.demo.screen import Screen

FRAME_SECONDS: Final = 0.125
"""Between two frames: smooth enough, and drawing takes a tenth of it."""

SCENE_TIMEOUT: Final = 60.0
"""Seconds for a scene to have its effect. Usual is 1 to 3; the rest is for a machine that is busy."""


class SceneError(Exception):
    """A scene did not have its effect. The text has the tail of the scheduler's log."""


@dataclass(slots=True)
class Director:
    """What all scenes need."""

    api: Client
    feed: Feed
    scheduler: Component
    screen: Screen
    model: Model

    def play(self, scene: Scene) -> None:
        """Do what the scene does and show it until it has had its effect. Raises SceneError or ProcessError."""
        self.screen.begin(scene.caption)
        before = self.model.total()
        begun = time.monotonic()
        scene.act(self.api)
        while not scene.done(self.model):
            if time.monotonic() > begun + SCENE_TIMEOUT:
                log = self.scheduler.log_tail()
                raise SceneError(f"{scene.caption}\nNot after {SCENE_TIMEOUT:.0f} s. The scheduler's log ends:\n{log}")
            self.show()
        self.screen.end(self.model, before)
        while time.monotonic() < begun + scene.seconds:
            self.show()

    def show(self) -> None:
        """Show what happens until the next frame is due. Raises ProcessError if the scheduler has ended."""
        self.feed.update(self.model, until=time.monotonic() + FRAME_SECONDS)
        self.screen.tick(self.model)
        if not self.scheduler.running:
            raise ProcessError(
                f"the scheduler ended with code {self.scheduler.exit_code}:\n{self.scheduler.log_tail()}"
            )
