"""What queries and intakes have in common: a StreamingQuery that is started, watched and stopped, and may
fail.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from plait.errors import PlaitError, QueriesFailedError
from plait.failpoints import reach
from plait.runtime.checkpoint import Checkpoint
from plait.runtime.snapshot import QueryState
from plait.spark.execution import Execution, Frame
from plait.spark.failures import SPARK_ERRORS, explained

# How long Spark may take to end what has failed.
_END_SECONDS = 60.0


class StreamingWork:
    """`start` may be called again when an execution has ended well: it goes on where that one was.

    `label` says in messages what it is; `_process` is called with each micro-batch.
    """

    def __init__(self, label: str, frame: Frame, checkpoint: Path) -> None:
        self.label = label
        self.error: PlaitError | None = None
        self._frame = frame
        self._checkpoint_path = checkpoint
        self._execution: Execution | None = None
        self._trigger_seconds = 0.0
        self._batch_lock = Lock()  # held while a batch goes on

    def start(self, run_name: str, trigger_seconds: float | None) -> None:
        """Begin to process batches; without a trigger, of what is there now."""
        name = f"{run_name}: {self.label}"
        self._trigger_seconds = trigger_seconds or 0.0
        Checkpoint(self._checkpoint_path).sweep()
        self._execution = Execution(
            self._frame, name, self._checkpoint_path, self._process, trigger_seconds, self._batch_lock
        )
        reach("fragment-started")

    def start_again(self, frame: Frame) -> None:
        """Go on with another frame, over the same sources, where the one of before was."""
        self._frame = frame
        if self._execution is not None and self._execution.is_active:
            try:
                self._execution = self._execution.followed_by(frame)
            except SPARK_ERRORS as error:  # the one of before has stopped, and nothing goes on
                self.error = explained(error, self.label)
                raise

    def forget_failure(self) -> None:
        """Be as before the first start: what it failed by is out of the way. Spark may still be about to end
        what has failed, and starts no other of that name before."""
        if self._execution is not None:
            self._execution.stop(_END_SECONDS)
        self._execution = self.error = None

    @property
    def state(self) -> QueryState:
        if self.error is not None and not self.starts_again:
            return QueryState.FAILED
        if self._execution is None or self.starts_again:
            return QueryState.STARTING
        return QueryState.RUNNING if self._execution.is_active else QueryState.ENDED

    @property
    def starts_again(self) -> bool:
        """Whether it has failed by some of its queries, and is about to go on without these."""
        return isinstance(self.error, QueriesFailedError)

    @property
    def is_active(self) -> bool:
        return self._execution is not None and self._execution.is_active

    @property
    def found_nothing(self) -> bool:
        """Whether all there was at the last look is processed: that was a trigger ago at most."""
        return self._execution is not None and self._execution.found_nothing

    @property
    def whole_batch_seconds(self) -> dict[int, float]:
        """How long recent batches took with all that Spark does around ours, by number."""
        return {} if self._execution is None else self._execution.batch_seconds

    @property
    def gauges(self) -> dict[str, float]:
        """What Spark says of the last batch, and of the state of its operators."""
        return {} if self._execution is None else self._execution.gauges

    def watch(self) -> None:
        """Take note of what has happened since the last time."""
        execution = self._execution
        if execution is not None and self.error is None:
            failure = execution.failure
            if failure is not None and execution is self._execution:  # no other has begun meanwhile
                self.error = explained(failure, self.label)
                self.error.hint = self.error.hint or "mend that and start again: no row is lost or doubled"

    def process_available(self) -> None:
        """Wait until all that is there is processed; an execution that has ended waits for nothing."""
        if self._execution is not None:
            self._execution.process_available()

    def request_stop(self) -> None:
        if self._execution is not None:
            self._execution.request_stop()

    def stop(self, limit_seconds: float) -> None:
        if self._execution is not None:
            self._execution.stop(limit_seconds)
            self.watch()

    def _process(self, frame: Frame, batch: int) -> None:
        raise NotImplementedError
