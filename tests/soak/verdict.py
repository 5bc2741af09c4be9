"""Whether something grew: the last third of a run beside the second. The first third is for filling what is bounded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from tests.bench.plot import Curve, curves
from tests.soak.samples import Sample

ALLOWED_GROWTH: Final = 0.03
"""Of memory, from the second third to the last."""
ALLOWED_MORE: Final = 20
"""Descriptors, threads and the like that may be more: connections are opened as they are needed."""
LEAST_RATE: Final = 0.9
"""Of the pods that came, so many must have been bound."""

MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Thirds:
    """The mean of something in the second and in the last third."""

    second: float
    last: float

    @property
    def growth(self) -> float:
        """As a share of the second."""
        return self.last / self.second - 1 if self.second else 0.0


def thirds(samples: Sequence[Sample], value: Callable[[Sample], float]) -> Thirds:
    """Compare two thirds of the time. Raises ValueError for too few samples."""
    end = samples[-1].seconds if samples else 0.0
    second = [value(each) for each in samples if end / 3 < each.seconds <= 2 * end / 3]
    last = [value(each) for each in samples if each.seconds > 2 * end / 3]
    if not second or not last:
        raise ValueError(f"{len(samples)} samples are too few to judge")
    return Thirds(fmean(second), fmean(last))


def problems(samples: Sequence[Sample]) -> list[str]:
    """What grew that should not have; nothing if all is well. Raises ValueError for too few samples."""
    found = []
    memory = thirds(samples, lambda each: each.memory)
    if memory.growth > ALLOWED_GROWTH:
        found.append(
            f"memory grew by {memory.growth:.1%}, from {memory.second / MEBIBYTE:.1f} "
            f"to {memory.last / MEBIBYTE:.1f} MiB; {ALLOWED_GROWTH:.0%} are allowed"
        )
    counted: dict[str, Callable[[Sample], float]] = {
        "descriptors": lambda each: each.descriptors,
        "threads": lambda each: each.threads,
        "events in flight": lambda each: each.in_flight_events,
        "tasks": lambda each: each.tasks,
    }
    for name, value in counted.items():
        both = thirds(samples, value)
        if both.last > both.second + ALLOWED_MORE:
            found.append(f"{name}: {both.second:.0f} became {both.last:.0f}")
    first, last = samples[0], samples[-1]
    if last.bound - first.bound < LEAST_RATE * (last.made - first.made):
        found.append(f"{last.bound - first.bound:,.0f} of {last.made - first.made:,} pods were bound")
    return found


def summary(samples: Sequence[Sample]) -> str:
    """The run in a few lines. Raises ValueError for too few samples."""
    memory, first, last = thirds(samples, lambda each: each.memory), samples[0], samples[-1]
    seconds, pods = last.seconds - first.seconds, last.made - first.made
    cpu = last.cpu_seconds - first.cpu_seconds
    return "\n".join(
        (
            f"{pods:,} pods in {seconds / 60:.1f} minutes, {pods / seconds:.0f} a second; "
            f"{last.bound - first.bound:,.0f} bound",
            f"memory: second third {memory.second / MEBIBYTE:.1f} MiB, last third {memory.last / MEBIBYTE:.1f} MiB "
            f"({memory.growth:+.1%}); peak {max(each.memory for each in samples) / MEBIBYTE:.1f} MiB",
            f"CPU: {cpu / seconds:.0%} of a core, {1000 * cpu / max(1, pods):.2f} ms a pod",
            f"descriptors: at most {max(each.descriptors for each in samples)}; "
            f"pending pods: at most {max(each.pending for each in samples):,.0f}",
        )
    )


def memory_chart(samples: Sequence[Sample]) -> str:
    """Memory over time, as SVG."""
    lines = [
        line("resident memory", samples, lambda each: each.memory / MEBIBYTE),
        line("caches, as reckoned", samples, lambda each: each.cache_bytes / MEBIBYTE),
    ]
    return curves("Memory while pods come and go", "minutes", "MiB", lines)


def state_chart(samples: Sequence[Sample]) -> str:
    """Everything else over time, as SVG."""
    lines = [
        line("descriptors", samples, lambda each: each.descriptors),
        line("pending pods", samples, lambda each: each.pending),
        line("events in flight", samples, lambda each: each.in_flight_events),
    ]
    return curves("What else there is while pods come and go", "minutes", "number", lines)


def line(name: str, samples: Sequence[Sample], value: Callable[[Sample], float]) -> Curve:
    return Curve(name, [(each.seconds / 60, value(each)) for each in samples])
