"""Ranks in one process: collectives, mismatches, what is left behind, losses over ranks."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import shakedown
import shakedown._context

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
if not dist.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

from torch.distributed import distributed_c10d as c10d  # noqa: E402
from torch.distributed import nn as dist_nn  # noqa: E402

HERE = os.path.basename(__file__)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with shakedown._context.within(shakedown._context.Context()):
        yield


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No thread, group, hook or state of torch.distributed outlives a run."""

    def now():
        names = ("_world", "_pg_map", "_pg_names", "_group_count", "_backend")
        state = [getattr(c10d, name) for name in names]
        return [*state, threading.enumerate(), sys.excepthook, torch.is_grad_enabled()]

    before = now()
    yield
    assert now() == before
    assert c10d._pg_map == {} and not dist.is_initialized()
    gc.collect()
    groups = sys.modules["shakedown._process_group"].Group
    assert not [it for it in gc.get_objects() if type(it) is groups]


def test_every_rank_sees_its_own_world():
    def function(rank):
        assert dist.is_initialized() and dist.get_backend() == "shakedown"
        return dist.get_rank(), dist.get_world_size(), threading.current_thread().name

    found = shakedown.ranks(3).run(function)
    assert [it[:2] for it in found] == [(0, 3), (1, 3), (2, 3)]
    assert len({it[2] for it in found}) == 3


def test_reductions():
    def function(rank):
        found = []
        for op in ("SUM", "PRODUCT", "MIN", "MAX", "AVG"):
            tensor = torch.tensor([rank + 1.0, 2.0])
            dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
            found.append(tensor.tolist())
        return found

    expected = [[6, 6], [6, 8], [1, 2], [3, 2], [2, 2]]
    assert shakedown.ranks(3).run(function) == [expected] * 3


def collectives(rank):
    """One of each, with numbers that name where they come from."""
    n, found = dist.get_world_size(), []
    own = torch.arange(2.0 * n) + 100 * rank
    parts = list(own.chunk(n))
    for call in (
        lambda out: dist.all_gather(out, own[:2]),
        lambda out: dist.gather(own[:2], out if rank == 1 else None, dst=1),
        lambda out: dist.reduce_scatter(out[0], parts),
        lambda out: dist.reduce_scatter_tensor(out[0], own, op=dist.ReduceOp.MAX),
        lambda out: dist.scatter(out[0], parts if rank == 1 else None, src=1),
        lambda out: dist.broadcast(out[0].add_(rank), src=1),
        # What the others have of it afterwards is left to the library.
        lambda out: dist.reduce(out[0].add_(rank) if rank == 1 else own[:2].clone(), dst=1),
        lambda out: dist.all_reduce(out[0].add_(rank), async_op=True).wait(),
    ):
        call(out := [torch.zeros(2) for _ in range(n)])
        found.append(torch.stack(out))
    sizes = [other + 1 for other in range(n)]
    sent = own.repeat(n)[: n * (rank + 1)]  # `rank + 1` numbers to every rank
    for call in (
        lambda out: dist.all_gather_into_tensor(out[:n], own[:1]),
        lambda out: dist.all_to_all_single(out[:n], own[:n]),
        lambda out: dist.all_to_all_single(out, sent, sizes, [rank + 1] * n),
    ):
        call(out := torch.zeros(sum(sizes)))
        found.append(out)
    objects = [[None] * n, [rank], [None] * n, [None]]
    dist.all_gather_object(objects[0], "a" * rank)
    dist.broadcast_object_list(objects[1], src=1)
    dist.gather_object({"rank": rank}, objects[2] if rank == 1 else None, dst=1)
    dist.scatter_object_list(objects[3], [*range(n)], src=0)
    dist.barrier()
    group = dist.new_group([0, n - 1])
    if rank in (0, n - 1):
        dist.all_reduce(own, group=group)
        found.append((own, dist.get_rank(group), dist.get_world_size(group)))
    leaf = torch.tensor([1.0 + rank], requires_grad=True)
    (dist_nn.functional.all_reduce(leaf * leaf) ** 2).backward()
    sum(it**3 for it in dist_nn.functional.all_gather(leaf)).backward()
    return [*found, objects, leaf.grad]


def test_collectives_give_what_they_should():
    first, second = shakedown.ranks(2).run(collectives)

    def numbers(found):
        return [it.flatten().int().tolist() for it in found[:11]]

    assert numbers(first) == [
        [0, 1, 100, 101],
        [0, 0, 0, 0],
        [100, 102, 0, 0],
        [100, 101, 0, 0],
        [100, 101, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 100, 0],
        [0, 100, 0],
        [0, 100, 101],
    ]
    assert numbers(second) == [
        [0, 1, 100, 101],
        [0, 1, 100, 101],
        [104, 106, 0, 0],
        [102, 103, 0, 0],
        [102, 103, 0, 0],
        [1, 1, 0, 0],
        [1, 2, 0, 0],
        [1, 1, 0, 0],
        [0, 100, 0],
        [1, 101, 0],
        [1, 102, 103],
    ]
    for rank, found in enumerate((first, second)):
        summed, *place = found[11]
        assert summed.tolist() == [100, 102, 104, 106] and place == [rank, 2]
        gathered = [{"rank": 0}, {"rank": 1}] if rank == 1 else [None, None]
        assert found[12] == [["", "a"], [1], gathered, [rank]]
    # Every rank adds (1 + 4)² and 1 + 8 to what is differentiated: each leaf gets it twice.
    assert first[13].tolist() == [2 * (2 * 5 * 2 * 1 + 3)]
    assert second[13].tolist() == [2 * (2 * 5 * 2 * 2 + 12)]


def in_a_process(rank, folder):
    where = f"file://{folder}/rendezvous"
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=3)
    torch.save(collectives(rank), f"{folder}/{rank}")
    dist.destroy_process_group()


@pytest.mark.night
def test_collectives_give_what_processes_give(tmp_path):
    torch.multiprocessing.spawn(in_a_process, (str(tmp_path),), nprocs=3)
    for rank, found in enumerate(shakedown.ranks(3).run(collectives)):
        expected = torch.load(tmp_path / str(rank), weights_only=False)
        torch.testing.assert_close(found[:-2], expected[:-2])
        torch.testing.assert_close(found[-1], expected[-1])
        assert found[-2] == expected[-2]


def test_reductions_go_in_the_order_of_the_ranks():
    def function(rank):
        tensor = torch.tensor([1e8, 1.0, -1e8][rank])
        dist.all_reduce(tensor)
        return tensor.item()

    assert {it for _ in range(5) for it in shakedown.ranks(3).run(function)} == {0.0}


def test_handles_are_waited_for_in_any_order():
    def function(rank):
        tensors = [torch.tensor(rank + 1.0), torch.tensor(10.0 * rank)]
        handles = [dist.all_reduce(it, async_op=True) for it in tensors]
        for handle in handles[:: 1 - 2 * rank]:
            assert handle.wait() and handle.is_completed()
        assert handles[0].get_future().value() == [tensors[0]]
        return [it.item() for it in tensors]

    assert shakedown.ranks(2).run(function) == [[3, 10], [3, 10]]


def test_autograd_does_not_see_what_a_collective_writes():
    """As with processes: backward takes the new value, and does not complain."""

    def function(rank):
        leaf = torch.zeros((), requires_grad=True)
        dist.all_reduce(kept := leaf.exp())
        kept.backward()
        return leaf.grad.item()

    assert shakedown.ranks(3).run(function) == [3, 3, 3]


def test_replicas_in_ddp_get_the_mean_of_the_gradients():
    def function(rank):
        model = torch.nn.Linear(1, 1, bias=False)
        replica = torch.nn.parallel.DistributedDataParallel(model)
        replica(torch.tensor([[rank + 1.0]])).sum().backward()
        return model.weight.grad.item()

    assert shakedown.ranks(3).run(function) == [2.0] * 3


def skips(rank):
    if rank == 1:
        return
    dist.all_reduce(torch.ones(()))  # skips


def calls_another(rank):
    if rank == 1:
        dist.all_gather([torch.ones(3)] * 3, torch.ones(3))  # other
    dist.all_reduce(torch.ones(3))  # call


def sends_another_shape(rank):
    dist.all_reduce(torch.ones(1 + (rank == 1)))  # shape


def sends_another_dtype(rank):
    dist.all_reduce(torch.ones(2, dtype=torch.int64 if rank == 1 else None))  # dtype


def reduces_otherwise(rank):
    dist.all_reduce(torch.ones(()), op=dist.ReduceOp.MAX if rank == 1 else dist.ReduceOp.SUM)  # how


def has_another_root(rank):
    dist.broadcast(torch.ones(()), src=int(rank == 1))  # root


def forgets_a_handle(rank):
    if rank != 1:
        dist.barrier(async_op=True)  # forgets


def makes_another_group(rank):
    group = dist.new_group([1, 2] if rank == 1 else [0, 2])
    dist.barrier(group=group)  # group


def skips_the_backward_pass(rank):
    leaf = torch.ones((), requires_grad=True)
    loss = dist_nn.functional.all_reduce(leaf)
    if rank != 1:
        loss.backward()  # backward


def line(mark):
    """A line of this file, as a message has it."""
    with open(__file__, encoding="utf-8") as file:
        [number] = [n for n, text in enumerate(file, 1) if text.endswith(f"# {mark}\n")]
    return f"{HERE}:{number}"


@pytest.mark.parametrize(
    "function, others, one",
    [
        (skips, "all_reduce (SUM) of float32 [] at {skips}", "has returned"),
        (
            calls_another,
            "all_reduce (SUM) of float32 [3] at {call}",
            "all_gather of float32 [3] at {other}",
        ),
        (
            sends_another_shape,
            "all_reduce (SUM) of float32 [1] at {shape}",
            "all_reduce (SUM) of float32 [2] at {shape}",
        ),
        (
            sends_another_dtype,
            "all_reduce (SUM) of float32 [2] at {dtype}",
            "all_reduce (SUM) of int64 [2] at {dtype}",
        ),
        (
            reduces_otherwise,
            "all_reduce (SUM) of float32 [] at {how}",
            "all_reduce (MAX) of float32 [] at {how}",
        ),
        (
            has_another_root,
            "broadcast (from 0) of float32 [] at {root}",
            "broadcast (from 1) of float32 [] at {root}",
        ),
        (forgets_a_handle, "barrier at {forgets}", "has returned"),
        (makes_another_group, "has returned", "barrier among ranks [1, 2] at {group}"),
        (skips_the_backward_pass, "all_reduce (SUM) of float32 [] at {backward}", "has returned"),
    ],
)
def test_a_mismatch_names_the_lines(function, others, one, monkeypatch):
    monkeypatch.chdir(os.path.dirname(__file__))
    marks = [
        "skips",
        "call",
        "other",
        "shape",
        "dtype",
        "how",
        "root",
        "forgets",
        "group",
        "backward",
    ]
    lines = {mark: line(mark) for mark in marks}
    with pytest.raises(shakedown.CollectiveMismatch) as caught:
        shakedown.ranks(3).run(function)
    said = "the ranks do not call the same collective: "
    said += f"ranks 0, 2: {others.format(**lines)}; rank 1: {one.format(**lines)}"
    assert str(caught.value) == said


def test_a_mismatch_cannot_be_caught_in_a_rank():
    def function(rank):
        while rank == 0:
            try:
                dist.barrier()
            except Exception:
                pass

    with pytest.raises(shakedown.CollectiveMismatch, match="rank 1: has returned"):
        shakedown.ranks(2).run(function)


def test_the_exception_of_the_first_rank_is_raised_and_the_others_end():
    ended = []

    def function(rank):
        try:
            if rank > 0:
                raise ValueError(f"of rank {rank}")
            dist.barrier()
        finally:
            ended.append(rank)

    with pytest.raises(ValueError, match="of rank 1"):
        shakedown.ranks(3).run(function)
    assert sorted(ended) == [0, 1, 2]


def test_a_rank_may_skip_or_exit():
    for error in (pytest.skip.Exception("no"), SystemExit(3)):

        def function(rank, error=error):
            raise error

        with pytest.raises(type(error)):
            shakedown.ranks(2).run(function)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarm on this system")
@pytest.mark.parametrize("rank_that_loops", [0, 1])
def test_an_interrupt_ends_all_ranks(rank_that_loops):
    def function(rank):
        while rank == rank_that_loops:
            pass
        dist.barrier()

    def ring(*_):
        raise KeyboardInterrupt

    theirs = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            shakedown.ranks(2).run(function)
        assert time.monotonic() - began < 10
    finally:
        signal.signal(signal.SIGALRM, theirs)
    assert shakedown.ranks(2).run(lambda rank: rank) == [0, 1]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarm on this system")
def test_a_rank_that_ends_too_late_disturbs_no_other():
    late = []

    def function(rank):
        late.append(threading.current_thread())
        time.sleep(1)

    def ring(*_):
        raise KeyboardInterrupt

    theirs = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)  # again, while it waits for the end of the rank
    try:
        with pytest.raises(KeyboardInterrupt):
            shakedown.ranks(1).run(function)
        signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, theirs)

    def another(rank):
        assert rank == 1 or late[0].is_alive()
        late[0].join()
        dist.all_reduce(found := torch.ones(()))
        return found.item()

    assert shakedown.ranks(2).run(another) == [2, 2]


def test_an_error_in_a_rank_has_the_traceback_of_the_users_code():
    def function(rank):
        raise ValueError(rank)

    with pytest.raises(ValueError) as caught:
        shakedown.ranks(2).run(function)
    files = [os.path.basename(entry.path) for entry in caught.traceback]
    assert files == [HERE, "_errors.py", "_ranks.py", "_ranks.py", "_process_group.py", HERE]


def test_ranks_follow_the_callers_mode_of_autograd():
    with torch.no_grad():
        assert shakedown.ranks(2).run(lambda rank: torch.is_grad_enabled()) == [False, False]
    assert shakedown.ranks(1).run(lambda rank: torch.is_grad_enabled()) == [True]


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2", None])
def test_a_number_of_ranks_is_refused(n):
    with pytest.raises(shakedown.UsageError, match="expected a number of ranks, 1 or more"):
        shakedown.ranks(n)


def test_ranks_have_no_ranks():
    with pytest.raises(shakedown.UsageError, match="ranks have no ranks of their own"):
        shakedown.ranks(2).run(lambda rank: shakedown.ranks(2).run(str))


def test_a_group_of_the_user_stays():
    """In a fresh process, as torch keeps what was initialised once."""
    code = (
        "import shakedown, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
        "group = dist.group.WORLD\n"
        "def function(rank):\n"
        "    tensor = torch.ones(())\n"
        "    dist.all_reduce(tensor)\n"
        "    return dist.group.WORLD is group, tensor.item()\n"
        "assert shakedown.ranks(2).run(function) == [(False, 2.0)] * 2\n"
        "assert dist.group.WORLD is group and dist.get_backend() == 'gloo'\n"
        "dist.all_reduce(tensor := torch.ones(()))\n"
        "assert tensor.item() == 1 and dist.new_group([0]) is not None\n"
        "dist.destroy_process_group()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def token_losses(log_probs, old_log_probs, advantages, mask):
    ratio = (log_probs - old_log_probs).exp()
    losses = -torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    return losses.where(mask, 0.0)


def right(*batch):
    count = batch[-1].sum()
    dist.all_reduce(count)
    return token_losses(*batch).sum() / count.clamp(min=1) * dist.get_world_size()


def right_everywhere(*batch):
    """Every rank has the loss of the whole batch, through collectives that autograd follows."""
    total, count = token_losses(*batch).sum(), batch[-1].sum()
    dist.all_reduce(count)
    return dist_nn.functional.all_reduce(total) / count.clamp(min=1)


def mean_of_means(*batch):
    return token_losses(*batch).sum() / batch[-1].sum().clamp(min=1)


def without_the_world_size(*batch):
    return right(*batch) / dist.get_world_size()


def behind_the_back_of_autograd(*batch):
    """The loss of the whole batch on every rank, whose gradient stays that of the rank."""
    total, count = token_losses(*batch).sum(), batch[-1].sum()
    dist.all_reduce(total)
    dist.all_reduce(count)
    return total / count.clamp(min=1)


def skips_without_a_token(*batch):
    if batch[-1].sum() == 0:
        return batch[0].sum() * 0
    return right(*batch)


def constant_without_a_token(*batch):
    return right(*batch) if batch[-1].sum() > 0 else right(*batch).detach()


def report(loss, n):
    def over_ranks(log_probs, old_log_probs, advantages, mask):
        return shakedown.ranks(n).mean(loss, log_probs, old_log_probs, advantages, mask)

    laws = ["does-not-raise", "oracle", "gradient"]
    contract = shakedown.PolicyLoss(aggregate="token-mean")
    return contract.settings(cases=12, arrays="torch", only=laws).report(over_ranks)


@pytest.mark.parametrize("loss, n", [(right, 2), (right, 4), (right_everywhere, 3)])
def test_a_right_loss_holds_on_any_number_of_ranks(loss, n):
    found = report(loss, n)
    assert found, found.text


@pytest.mark.parametrize(
    "loss, invariant, words",
    [
        (mean_of_means, "oracle", "mask [[1]]"),
        (without_the_world_size, "oracle", "divided by 2"),
        (behind_the_back_of_autograd, "gradient", "grad_log_probs"),
        (skips_without_a_token, "does-not-raise", "rank 1: has returned"),
        (constant_without_a_token, "does-not-raise", "the loss of rank 1 is a constant"),
    ],
)
def test_a_wrong_loss_is_found(loss, invariant, words):
    text = report(loss, 2).text
    assert f"✗ {invariant}" in text and words in text, text


def test_the_mean_has_the_gradient_of_what_its_function_closes_over():
    weight = torch.tensor(3.0, requires_grad=True)
    scale = weight * 2  # part of the graph of every rank
    rows = torch.arange(5.0, requires_grad=True)

    def local(own):
        return (own * scale).sum()

    def everywhere(own):
        return dist_nn.functional.all_reduce(local(own)) / 2

    for function in (local, everywhere):
        loss = shakedown.ranks(2).mean(function, rows)
        assert loss.item() == 30
        gradients = torch.autograd.grad(loss, [weight, rows], retain_graph=True)
        assert gradients[0].item() == 10 and gradients[1].tolist() == [3] * 5


def test_rows_are_dealt_in_order_and_other_values_are_given_to_all():
    def function(rows, option, none=None, named=None):
        return torch.stack([rows + option, named], dim=1)

    rows = torch.arange(3.0)
    found = shakedown.ranks(2).gather(function, rows, 10, named=-rows)
    assert found.tolist() == [[10, 0], [11, -1], [12, -2]]
    assert len(shakedown.ranks(5).gather(lambda own: own, rows)) == 3


def test_mean_and_gather_say_what_they_expect():
    world = shakedown.ranks(2)
    with pytest.raises(shakedown.UsageError, match="equal numbers of rows, found 3 and 4"):
        world.mean(torch.dot, torch.zeros(3), torch.zeros(4))
    with pytest.raises(shakedown.UsageError, match="equal numbers of rows, found no tensor"):
        world.gather(len, [1.0, 2.0])  # as with `arrays="list"`
    with pytest.raises(
        shakedown.UsageError, match=r"one number from each rank, found a tensor \[2\]"
    ):
        world.mean(lambda rows: rows, torch.zeros(4))
    with pytest.raises(shakedown.UsageError, match="expected a tensor with rows"):
        world.gather(torch.sum, torch.zeros(4))


def gathered(rows):
    """The rows of all ranks; each may have another number."""
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, rows)
    return torch.cat(parts)


def test_whitening_over_ranks():
    def whiten(values, mask, is_global=True):
        counted = gathered(values[mask]) if is_global else values[mask]
        if len(counted) < 2:
            return torch.zeros_like(values)
        mean, variance = counted.mean(), counted.var()
        return ((values - mean) / (variance + 1e-8).sqrt()).where(mask, 0.0)

    contract = shakedown.Whiten().settings(cases=12, arrays="torch", only=["oracle"])
    world = shakedown.ranks(2)
    found = contract.report(lambda values, mask: world.gather(whiten, values, mask))
    assert found, found.text
    found = contract.report(lambda values, mask: world.gather(whiten, values, mask, False))
    assert not found
