"""Threads that take turns: one runs at a time, until it waits or ends, in a fixed order."""

from __future__ import annotations

import contextvars
import ctypes
import threading
import typing

PATIENCE = 0.2  # seconds until a thread that does not end is interrupted again


class Ended(SystemExit):
    """Ends a thread whose result is wanted no more."""


class Turn:
    """One of the threads."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.baton = taken()  # whoever releases it lets the thread go on
        self.thread: threading.Thread
        self.can_go_on: typing.Callable[[], bool] = lambda: True
        self.has_ended = False
        self.result: typing.Any = None
        self.error: BaseException | None = None

    def has_begun(self) -> bool:
        return self.thread.ident is not None

    def go_on(self) -> None:
        """Begins the thread, or lets it go on."""
        if self.has_begun():
            self.baton.release()
        else:
            self.thread.start()


class Turns:
    """Calls a function in several threads, with the number of each."""

    def __init__(self, size: int, taking: typing.Callable[[int], None]) -> None:
        self.turns = [Turn(number) for number in range(size)]
        self.taking = taking
        """Called in a thread with its number, whenever its turn begins."""
        self.running: Turn | None = None
        self.is_over = False
        self.lock = threading.Lock()  # of who runs
        self.idle = taken()  # released when no thread can go on

    def run(self, function: typing.Callable[[int], typing.Any]) -> None:
        """Runs the threads until none can go on, and ends those that wait."""
        for turn in self.turns:
            context = contextvars.copy_context()
            turn.thread = threading.Thread(
                target=context.run, args=(self.take, turn, function), daemon=True
            )
        try:
            self.hand_on()
            self.idle.acquire()
        finally:
            self.end()

    def take(self, turn: Turn, function: typing.Callable[[int], typing.Any]) -> None:
        """What a thread does."""
        try:
            self.begin(turn)
            turn.result = function(turn.number)
        except Ended:
            pass
        except BaseException as error:
            turn.error = error
        finally:
            turn.has_ended = True
            self.hand_on()

    def wait_until(self, can_go_on: typing.Callable[[], bool]) -> None:
        """Lets the others run, and goes on once the condition holds."""
        turn = self.running
        if self.is_over or turn is None:
            raise Ended
        turn.can_go_on = can_go_on
        self.hand_on()
        turn.baton.acquire()
        self.begin(turn)

    def stop(self) -> typing.NoReturn:
        """Ends this thread, and then all others."""
        self.is_over = True
        raise Ended

    def begin(self, turn: Turn) -> None:
        self.taking(turn.number)
        if self.is_over:
            raise Ended

    def hand_on(self) -> None:
        """Lets the first thread run that can go on; where there is none, `run` goes on."""
        with self.lock:
            self.running = None
            for turn in self.turns:
                if not (self.is_over or turn.has_ended) and turn.can_go_on():
                    self.running = turn
                    turn.go_on()
                    return
            self.idle.release()

    def end(self) -> None:
        """Ends the threads that have not ended, one by one, first the one that runs."""
        with self.lock:
            self.is_over = True
            running = self.running
            if running is None:
                self.idle.acquire(blocking=False)
        for turn in [running, *self.turns] if running else self.turns:
            if turn.has_begun() and not turn.has_ended:
                self.end_one(turn)
        for turn in self.turns:
            if turn.has_begun():
                turn.thread.join(PATIENCE)

    def end_one(self, turn: Turn) -> None:
        if turn is self.running:
            interrupt(turn.thread)
        else:
            self.running = turn
            turn.go_on()
        while turn.thread.is_alive() and not self.idle.acquire(timeout=PATIENCE):
            interrupt(turn.thread)


def taken() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


def interrupt(thread: threading.Thread) -> None:
    """Raises Ended in a thread as soon as it runs Python."""
    ident = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(Ended))
