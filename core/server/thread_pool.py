"""The threads of a web worker, with which it goes on when the system has no more."""

from concurrent.futures import ThreadPoolExecutor


class SteadyThreadPool(ThreadPoolExecutor):
    """Queues calls for the threads that there are if the system refuses another one.

    ``ThreadPoolExecutor`` queues the call too, but then raises, which would end the worker.
    """

    def start_first_thread(self) -> None:
        """So that a worker without any other thread still answers, which /readyz needs."""
        self.submit(int)

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise
