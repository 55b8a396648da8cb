"""The worker: what runs jobs in one process. The map of the road, station by station.

claim    asks the store for as many jobs as can start soon, and gives back what could not
run      one attempt: its limiter, its handler, and the verdict; `call` calls the handler, on the loop or in a thread
settle   tells the store how runs ended, then the observer and `on_fail`
watch    time limits, holds that must be renewed, and a blocked event loop
tick     pushes the runs of schedules, ahead
wake     the one-slot signal that ends the claimer's wait
crew     the whole: who is running, and how all of it stops
"""

from fastqueue.worker.crew import TAIL, Worker
from fastqueue.worker.settle import SETTLE_BOUND

__all__ = ["SETTLE_BOUND", "TAIL", "Worker"]
