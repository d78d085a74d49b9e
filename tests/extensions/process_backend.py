"""A backend of another package: other processes of this machine answer, each question in whichever is free."""

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from exactrank.extend import Backend, answer


class ProcessBackend(Backend):
    """Answers in a number of processes, until it is closed."""

    def __init__(self, workers):
        self.workers_wanted = workers
        self.pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
        self.asked = 0  #: number of questions

    @property
    def workers(self):
        return self.workers_wanted

    def ask(self, data, question):
        self.asked += 1
        return list(self.pool.map(partial(answer, key=data.key, question=question), data.partitions))

    def close(self):
        self.pool.shutdown()

    def __deepcopy__(self, memo):  # copies of a ranker use the same processes
        return self
