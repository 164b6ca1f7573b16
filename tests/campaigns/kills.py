"""Kills: SIGKILL at random moments, then the same command until it is done; the results must be equal bit for bit."""

import random
import time
from collections.abc import Iterator

from tests.campaigns.records import LOST, MISSED, REFUSED, SURVIVED, Record
from tests.campaigns.works import Workshop, clean

KIND = "kills"
MOST = 6  # kills in one case


def list_cases(shop: Workshop) -> Iterator[tuple[str, int]]:
    """Yield (work, seed) without end, each work once before the first is tried again."""
    seed = 0
    while True:
        yield from ((name, seed) for name in shop.works)
        seed += 1


def run_case(shop: Workshop, name: str, seed: int) -> Record:
    """Kill a work one to six times and finish it."""
    reference = shop.reference(name)
    if reference.refused:
        return Record(KIND, name, seed, REFUSED, reference.refused)
    coins = random.Random(f"{KIND} {name} {seed}")
    folder = shop.folder / "cases" / f"{KIND}-{name}-{seed}".replace(" ", "_")
    clean(folder)
    begun, hits, moments, kill_count = time.monotonic(), 0, list[float](), 1 + coins.randrange(MOST)
    longest = 0.8 * reference.seconds
    while hits < kill_count and len(moments) < 2 * MOST:
        running = shop.start(name, folder)
        moment = coins.uniform(0.02 * longest, longest)
        moments.append(round(moment, 2))
        running.wait(moment)
        if running.kill():
            hits += 1
        elif hits:
            break  # it had ended, as it may
        else:
            longest /= 2  # the machine is faster than when the work was undisturbed
            clean(folder)
    wrong = shop.finish(name, folder)
    outcome = LOST if wrong else SURVIVED if hits else MISSED
    if not wrong:
        clean(folder)
    return Record(
        KIND, name, seed, outcome, wrong, round(time.monotonic() - begun, 2), {"kills": hits, "moments": moments}
    )
