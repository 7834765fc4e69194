"""Components of `group-advantage` that behave badly. Standard library only (`arrays: list`).

Most are right on groups of two and bad from three rewards on, so that a finding needs some
shrinking and its smallest case is known: three rewards.
"""

import array
import contextlib
import ctypes
import functools
import json
import os
import signal
import stat
import struct
import subprocess
import sys
import threading
import time


def right(rewards, groups, epsilon=1e-4):
    """What the contract asks for under its default options."""
    members = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    advantages = [0.0] * len(rewards)
    for rows in members.values():
        if len(rows) > 1:
            mean = sum(rewards[row] for row in rows) / len(rows)
            squares = sum((rewards[row] - mean) ** 2 for row in rows)
            std = (squares / (len(rows) - 1)) ** 0.5
            for row in rows:
                advantages[row] = (rewards[row] - mean) / (std + epsilon)
    return advantages


def from_three(misbehave):
    """A component that misbehaves from three rewards on and is right below."""

    def component(rewards, groups, epsilon):
        if len(rewards) > 2:
            return misbehave(rewards, groups)
        return right(rewards, groups, epsilon)

    return component


# Raises.


@from_three
def raises(rewards, groups):
    raise ValueError(f"{len(rewards)} rewards are too many")


@from_three
def raises_what_is_no_exception(rewards, groups):
    raise KeyboardInterrupt


@from_three
def raises_without_words(rewards, groups):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    raise Mute


@from_three
def raises_a_novel(rewards, groups):
    raise ValueError("x" * 1_000_000)


@from_three
def raises_200_000_lines(rewards, groups):
    raise ValueError("\n".join(str(line) for line in range(200_000)))


def texts_of_10_megabytes(completions):
    return ["x" * 10_000_000 for _ in completions]


@from_three
def recurses(rewards, groups):
    return recurses(rewards, groups, 0.0)


@from_three
def exhausts_memory(rewards, groups):
    return bytearray(1 << 62)


# Returns too much.


@functools.cache
def megabytes_600():
    return [0.0] * 75_000_000


@from_three
def returns_600_megabytes(rewards, groups):
    return megabytes_600()


@from_three
def returns_600_megabytes_in_rows(rewards, groups):
    return [[0.0] * 1000] * 75_000


@from_three
def returns_600_megabytes_ragged(rewards, groups):
    return [[]] + [[0.0] * 1000] * 75_000


@functools.cache
def array_of_600_megabytes():
    return array.array("d", bytes(600_000_000))


@from_three
def returns_600_megabytes_in_an_array(rewards, groups):
    return array_of_600_megabytes()


# Speaks for the worker.


def reply_to_nobody():
    """A reply on the worker's own pipe, which is that of an open file with a high number."""
    texts = json.dumps({"__metadata__": {"kind": "returned"}}).encode()
    for pipe in map(int, os.listdir("/dev/fd")):
        with contextlib.suppress(OSError):
            if pipe > 2 and stat.S_ISFIFO(os.fstat(pipe).st_mode):
                os.write(pipe, struct.pack("<Q", len(texts)) + texts)


@from_three
def answers_by_itself(rewards, groups):
    reply_to_nobody()
    return [0.0] * len(rewards)


@from_three
def takes_400_megabytes(rewards, groups):
    return bytes(400 << 20) and right(rewards, groups)  # asked for, and never touched


# Does not come back.


@from_three
def hangs(rewards, groups):
    time.sleep(600)


def warms_up(rewards, groups, epsilon, warm=[], seconds=0.8):
    """Its first call takes longer than all others."""
    if not warm:
        time.sleep(seconds)
        warm.append(True)
    return right(rewards, groups, epsilon)


def warms_up_for_long(rewards, groups, epsilon):
    return warms_up(rewards, groups, epsilon, seconds=2.5)


def is_slow_once(rewards, groups, epsilon):
    """On its twentieth call, in whatever process."""
    with open("calls", "a") as calls:
        calls.write("+")
        number = calls.tell()
    if number == 20:
        time.sleep(1)
    return right(rewards, groups, epsilon)


@from_three
def hangs_deaf(rewards, groups):
    """Neither SIGTERM nor SIGINT helps, and a child process hangs along."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    subprocess.run(["sleep", "600"], check=True)


@from_three
def exits(rewards, groups):
    exit(0)


@from_three
def leaves(rewards, groups):
    os._exit(0)


@from_three
def segfaults(rewards, groups):
    ctypes.string_at(0)


@from_three
def kills_itself(rewards, groups):
    os.kill(os.getpid(), signal.SIGKILL)


@from_three
def kills_its_parent(rewards, groups):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


@from_three
def closes_everything(rewards, groups):
    os.closerange(3, 1000)
    return [0.0] * len(rewards)


# Comes back with something else.


@from_three
def nothing(rewards, groups):
    return None


@from_three
def nested(rewards, groups):
    return [[reward] for reward in rewards]


@from_three
def ragged(rewards, groups):
    return [[0.0], 0.0, [0.0, 0.0]]


@from_three
def too_short(rewards, groups):
    return right(rewards, groups)[:-1]


@from_three
def a_number(rewards, groups):
    return 0.0


@from_three
def a_string(rewards, groups):
    return "advantages"


@from_three
def strings(rewards, groups):
    return [str(reward) for reward in rewards]


@from_three
def complex_numbers(rewards, groups):
    return [complex(reward) for reward in rewards]


@from_three
def another_name(rewards, groups):
    return {"advantage": right(rewards, groups), "mean": 0.0}


@from_three
def a_set(rewards, groups):
    return set(rewards)


@from_three
def a_huge_integer(rewards, groups):
    return [10**400] * len(rewards)


@from_three
def not_a_number(rewards, groups):
    return [float("nan")] * len(rewards)


@from_three
def infinite(rewards, groups):
    return [float("inf")] * len(rewards)


# Leaves traces.


@from_three
def changes_its_inputs(rewards, groups):
    advantages = right(rewards, groups)
    rewards.sort()
    rewards[0] -= 1.0
    return advantages


@from_three
def drops_an_input_row(rewards, groups):
    advantages = right(rewards, groups)
    groups.pop()
    return advantages


calls = 0


@from_three
def counts_its_calls(rewards, groups):
    global calls
    calls += 1
    return [advantage + calls for advantage in right(rewards, groups)]


# More than one at a time.


def raises_and_segfaults(rewards, groups, epsilon):
    if len(rewards) == 3:
        raise ValueError("three rewards")
    if len(rewards) > 3:
        ctypes.string_at(0)
    return right(rewards, groups, epsilon)


def everything(rewards, groups, epsilon):
    """By the number of rewards: right, raises, dies, of another shape, NaN, hangs."""
    count = len(rewards)
    if count == 3:
        raise ValueError("three rewards")
    if count == 5:
        os._exit(7)
    if count == 6:
        return [0.0]
    if count == 7:
        return [float("nan")] * 7
    if count == 11:
        time.sleep(600)
    return right(rewards, groups, epsilon)


# Odd, but right.


def prints(rewards, groups, epsilon):
    """About 50 kB a call on standard output: by Python, by C, and by a child process."""
    print("x" * 20_000)
    sys.stdout.write("y" * 10_000)
    ctypes.CDLL(None).puts(b"z" * 10_000)
    os.write(1, b"\x08\0\0\0\0\0\0\0{}      " * 500)  # looks like a message
    return right(rewards, groups, epsilon)


shouted = False


def prints_from_a_child(rewards, groups, epsilon):
    global shouted
    if not shouted:
        subprocess.run([sys.executable, "-c", "print('w' * 3_000_000)"], check=True)
        shouted = True
    return right(rewards, groups, epsilon)


def reads_standard_input(rewards, groups, epsilon):
    assert sys.stdin.read() == ""
    return right(rewards, groups, epsilon)


def closes_standard_streams(rewards, groups, epsilon):
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()
    return right(rewards, groups, epsilon)


def goes_elsewhere(rewards, groups, epsilon):
    os.chdir("/")
    return right(rewards, groups, epsilon)


def forks(rewards, groups, epsilon):
    """Both halves come back."""
    os.fork()
    return right(rewards, groups, epsilon)


def leaves_threads_behind(rewards, groups, epsilon):
    if threading.active_count() < 8:
        threading.Thread(target=time.sleep, args=(600,)).start()
    return right(rewards, groups, epsilon)


def sets_an_alarm(rewards, groups, epsilon):
    """As verifiers do that limit their own time."""
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    return right(rewards, groups, epsilon)


# Components of a harness that is killed.

made = 0


def sleeps_on_a_call(rewards, groups, epsilon):
    """Raises from three rewards on, and sleeps on the call whose number the file `nap` has."""
    global made
    made += 1
    with open("nap") as file:
        number = int(file.read())
    if made == number:
        with open("asleep.partial", "w") as file:
            file.write(f"{os.getpid()} {os.getppid()}\n{rewards} {groups}\n")
        os.rename("asleep.partial", "asleep")
        time.sleep(600)
    if len(rewards) > 2:
        raise ValueError("too many")
    return right(rewards, groups, epsilon)


def records_its_calls(rewards, groups, epsilon):
    with open("calls", "a") as file:
        file.write(f"{rewards} {groups}\n")
    return right(rewards, groups, epsilon)


# Not functions of the contract.

not_a_function = 3


def asks_for_more(rewards, groups, logits):
    return rewards


def asks_for_a_misspelt_option(rewards, groups, epsilom):
    return rewards
