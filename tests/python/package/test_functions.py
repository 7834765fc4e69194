"""Every kind of thing that can be called: methods, objects, classes, modules, wrapped functions."""

import asyncio
import dataclasses
import decimal
import fractions
import functools
import types

import pytest

import shakedown
import shakedown._drive

torch = pytest.importorskip("torch")

OPTIONS = {"scale": "std", "epsilon": 1e-4}


def advantages(rewards, groups, epsilon):
    out = torch.zeros_like(rewards)
    for group in groups.unique():
        rows = groups == group
        some = rewards[rows]
        deviation = some.std() if len(some) > 1 else torch.zeros(())
        out[rows] = (some - some.mean()) / (deviation + epsilon)
    return out


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with shakedown._context.within(shakedown._context.Context()):
        yield


@pytest.fixture
def contract():
    return shakedown.GroupAdvantage(**OPTIONS).settings(arrays="torch", cases=24)


class Trainer:
    """Advantages as a method of every kind; `shift` is a bug."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def bound(self, rewards, groups, epsilon):
        return advantages(rewards, groups, epsilon) + self.shift

    @classmethod
    def of_class(cls, rewards, groups, epsilon):
        return advantages(rewards, groups, epsilon)

    @staticmethod
    def static(rewards, groups, epsilon):
        return advantages(rewards, groups, epsilon)

    async def awaited(self, rewards, groups, epsilon):
        await asyncio.sleep(0)
        return self.bound(rewards, groups, epsilon)

    __call__ = bound


class Module(torch.nn.Module):
    def __init__(self, shift=0.0):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.tensor(shift))

    def forward(self, rewards, groups, epsilon):
        return advantages(rewards, groups, epsilon) + self.shift.detach()


class Awaited:
    async def __call__(self, rewards, groups, epsilon):
        return advantages(rewards, groups, epsilon)


class Later:
    """Something that can be awaited, and is no coroutine."""

    def __init__(self, value):
        self.value = value

    def __await__(self):
        return asyncio.sleep(0, self.value).__await__()


@torch.no_grad()
def under_no_grad(rewards, groups, epsilon):
    return advantages(rewards, groups, epsilon)


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rewards, groups, epsilon):
        return advantages(rewards, groups, epsilon)


class FunctionOfTwo(torch.autograd.Function):
    @staticmethod
    def forward(rewards, groups, epsilon):
        return advantages(rewards, groups, epsilon)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass


def advantages_alone(rewards, groups):
    return advantages(rewards, groups, 1e-4)


def logged(function):
    """A decorator without `functools.wraps`."""

    def logs(*args, **kwargs):
        return function(*args, **kwargs)

    return logs


class Logged:
    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def hands_over(**kwargs):
    return {"alone": advantages_alone}["alone"](**kwargs)


@dataclasses.dataclass
class Result:
    advantages: torch.Tensor
    deviation: float = 0.0


class Record:
    def __init__(self, advantages):
        self.advantages = advantages


def returning(make):
    return lambda: lambda rewards, groups, epsilon: make(advantages(rewards, groups, epsilon))


RIGHT = {
    "apply": lambda: Function.apply,
    "apply with setup_context": lambda: FunctionOfTwo.apply,
    "wrapper": lambda: logged(advantages_alone),
    "two wrappers": lambda: logged(logged(advantages_alone)),
    "wrapper of a method": lambda: logged(Trainer().bound),
    "object around a function": lambda: Logged(advantages_alone),
    "what hands all over": lambda: hands_over,
    "dataclass": returning(Result),
    "namespace": returning(lambda it: types.SimpleNamespace(advantages=it, others=None)),
    "object with attributes": returning(Record),
    "with metrics": returning(lambda it: (it, {"deviation": 0.0})),
    "dict with metrics": returning(lambda it: ({"advantages": it}, {"deviation": 0.0})),
    "fractions": returning(lambda it: [fractions.Fraction(x) for x in it.tolist()]),
    "decimals": returning(lambda it: [decimal.Decimal(x) for x in it.tolist()]),
    "generator": returning(lambda it: (x for x in it.tolist())),
    "bound method": lambda: Trainer().bound,
    "class method": lambda: Trainer.of_class,
    "class method of an instance": lambda: Trainer().of_class,
    "static method": lambda: Trainer.static,
    "object": Trainer,
    "class without arguments": lambda: Trainer,
    "module": Module,
    "class of a module": lambda: Module,
    "forward of a module": lambda: Module().forward,
    "partial": lambda: functools.partial(advantages),
    "partial of an object": lambda: functools.partial(Trainer(), epsilon=1e-4),
    "async method": lambda: Trainer().awaited,
    "async object": Awaited,
    "awaitable": lambda: (
        lambda rewards, groups, epsilon: Later(advantages(rewards, groups, epsilon))
    ),
    "no_grad": lambda: under_no_grad,
    "compiled": lambda: torch.compile(advantages),
    "compiled module": lambda: torch.compile(Module()),
    "compiled method": lambda: torch.compile(Trainer().bound),
}


@pytest.mark.parametrize("kind", RIGHT)
@pytest.mark.parametrize("isolate", [False, True], ids=["here", "isolated"])
def test_everything_that_can_be_called_is_called(contract, kind, isolate):
    contract = contract.settings(isolate=isolate)
    if kind == "compiled module" and not isolate:
        assert contract.check(RIGHT[kind]()).warnings == [
            "what torch.compile would compile runs as it is written"
        ]
    assert contract.check(RIGHT[kind]())


WRONG = {"object": Trainer(1.0), "async method": Trainer(1.0).awaited, "module": Module(1.0)}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_with_it_is_found_and_its_line_is_known(contract, wrong):
    report = contract.report(wrong)
    assert report.status == "fail" and "zero-sum" in str([one.invariant for one in report.findings])
    [component] = report.json["components"]
    assert component["source"]["file"].endswith("test_functions.py"), component["source"]


def test_what_partial_sets_stays(contract):
    report = contract.report(functools.partial(advantages, epsilon=1.0))
    assert report.findings[0].diagnosis[0]["fault"] == "epsilon-swallows-the-signal"
    [said] = [text for text in report.warnings if "functools.partial" in text]
    assert said.startswith("`epsilon` stays 1.0, as functools.partial says")


def test_a_class_that_needs_arguments_says_what_to_do(contract):
    class Needy(Trainer):
        def __init__(self, threshold):
            super().__init__()

    words = "`.*Needy` is a class, and its constructor requires `threshold`: give it by `init`"
    with pytest.raises(shakedown.UsageError, match=words):
        contract.check(Needy)
    assert contract.check(Needy(0.5))


class Loss(torch.nn.Module):
    """GRPO's loss, of tokens."""

    def forward(self, log_probs, old_log_probs, advantages, mask, clip_low, clip_high):
        ratio = (log_probs - old_log_probs).masked_fill(~mask, 0).exp()
        clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
        weight = advantages[:, None] if advantages.ndim == 1 else advantages
        loss = -torch.minimum(ratio * weight, clipped * weight).masked_fill(~mask, 0)
        return loss.sum() / mask.sum().clamp(min=1)


def test_a_loss_of_shape_1_with_metrics_is_right():
    @functools.wraps(Loss().forward)
    def loss(**given):
        return Loss()(**given).reshape(1), {"clip_fraction": torch.zeros(3)}

    contract = shakedown.PolicyLoss().settings(arrays="torch", cases=16)
    assert contract.check(loss)


def test_a_generator_of_texts_is_a_list_of_them():
    contract = shakedown.contract("completion-decoder")
    expected = [finding.invariant for finding in contract.report(lambda texts: texts).findings]
    found = contract.report(lambda texts: (text for text in texts)).findings
    assert [finding.invariant for finding in found] == expected


def test_a_module_with_one_compiled_function_says_so_of_those_that_use_it(contract):
    @torch.compile
    def centred(rewards):
        return rewards

    def compiled(rewards, groups, epsilon):
        return advantages(centred(rewards), groups, epsilon)

    library = types.ModuleType("library")
    library.centred = centred
    scope = {"library": library, "advantages": advantages}
    code = "return advantages(library.centred(rewards), groups, epsilon)"
    exec(f"def imported(rewards, groups, epsilon): {code}", scope)
    imported = scope["imported"]

    said = ["what torch.compile would compile runs as it is written"]
    assert contract.check(compiled).warnings == said
    assert contract.check(imported).warnings == said
    assert contract.check(advantages).warnings == []


def test_no_grad_around_a_loss_is_named():
    contract = shakedown.PolicyLoss().settings(arrays="torch", cases=16, only=["gradient"])
    off = functools.partial(torch.set_grad_enabled, False)
    for make in (torch.no_grad, torch.inference_mode, off):
        context = make()
        report = contract.report(context(Loss().forward))
        assert report.status == "fail"
        assert f"`torch.{type(context).__name__}" in report.text, report.text
        assert "around the function: its output has no gradient" in report.text


def test_gradients_are_kept_in_a_test_that_needs_none():
    contract = shakedown.PolicyLoss().settings(arrays="torch", cases=16, only=["gradient"])
    with torch.no_grad():
        assert contract.check(Loss())
        assert not torch.is_grad_enabled()


def pooled(shards):
    """The mean over all tokens of all shards; 0 of none."""
    numbers = [shard["values"][shard["mask"]] for shard in shards]
    numbers = torch.cat([part.flatten() for part in numbers])
    return numbers.mean() if len(numbers) else torch.zeros(())


def mean_of_means(shards):
    """The same for each shard by itself, and the mean of these."""
    means = [pooled([shard]) for shard in shards if shard["mask"].any()]
    return torch.stack(means).mean() if means else torch.zeros(())


@pytest.mark.parametrize("isolate", [False, True])
def test_a_single_value_is_the_first_output_where_any_will_do(isolate):
    contract = shakedown.MetricReduction(empty_mask="zero").settings(arrays="torch", cases=32)
    contract = contract.settings(isolate=isolate)
    assert contract.check(pooled)
    report = contract.report(mean_of_means)
    assert report.status == "fail"
    assert "mean-of-rank-means" in report.text, report.text


def entropies(logits, temperature):
    log_probs = torch.log_softmax(logits / temperature, -1)
    return -(log_probs.exp() * log_probs).sum(-1)


def mean_entropy(logits, mask, temperature):
    rows = entropies(logits, temperature).masked_fill(~mask, 0)
    return {"entropy": rows.sum() / mask.sum().clamp(min=1)}


def detached_entropy(logits, mask, temperature):
    return mean_entropy(logits.detach() + 0 * logits, mask, temperature)


def test_the_gradient_is_that_of_the_output_that_is_given():
    contract = shakedown.EntropyBonus(empty_mask="zero").settings(arrays="torch", cases=32)
    assert contract.check(mean_entropy)
    report = contract.report(detached_entropy)
    assert report.status == "fail"
    assert "oracle" not in {one.invariant for one in report.findings}, report.text
    assert "the gradient is wrong: 0 times what it is" in report.text, report.text


def completion_mask(tokens, dtype):
    """1 up to the first token 1 of each row, as integers of a dtype."""
    is_end = tokens == 1
    mask = is_end.cumsum(-1) - (is_end + 0) == 0
    return mask.to(getattr(torch, dtype)) if torch.is_tensor(mask) else mask.astype(dtype)


UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_unsigned_integers_are_integers(library, dtype):
    pytest.importorskip(library)
    contract = shakedown.CompletionMask(eos=[1], unfinished="all")
    contract = contract.settings(arrays=library, cases=32)
    assert contract.check(functools.partial(completion_mask, dtype=dtype))


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_an_unsigned_integer_that_does_not_fit_is_named(library):
    numpy = pytest.importorskip("numpy")

    def too_large(tokens):
        mask = numpy.full(tuple(tokens.shape), 2**64 - 1, dtype=numpy.uint64)
        return torch.from_numpy(mask) if library == "torch" else mask

    report = shakedown.CompletionMask().settings(arrays=library, cases=8).report(too_large)
    limit = "above the largest int64, 9223372036854775807"
    assert report.findings[0].found.endswith(
        f"for `mask`: uint64 holds 18446744073709551615, {limit}"
    ), report.text


def test_a_dtype_that_is_no_number_of_ours_is_refused_with_all_that_are():
    numpy = pytest.importorskip("numpy")
    contract = shakedown.CompletionMask().settings(arrays="numpy", cases=8)
    report = contract.report(lambda tokens: tokens.astype(numpy.complex64))
    known = "float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, bool"
    expected = f"dtype complex64, expected one of {known}, uint16, uint32, uint64"
    assert report.findings[0].found.endswith(expected), report.text


def loss_and_gradient(factor, name="grad_log_probs"):
    """A loss without autograd's graph, with a gradient of its own."""

    @functools.wraps(Loss().forward)
    def function(log_probs, **rest):
        leaf = log_probs.detach().requires_grad_()
        loss = Loss()(leaf, **rest)
        [gradient] = torch.autograd.grad(loss, leaf, allow_unused=True)
        gradient = torch.zeros_like(leaf) if gradient is None else gradient
        return {"loss": loss.detach(), name: (factor * gradient).numpy()}

    return function


@pytest.mark.parametrize("isolate", [False, True], ids=["here", "isolated"])
def test_the_gradient_that_a_function_returns_is_the_one_that_is_checked(isolate):
    contract = shakedown.PolicyLoss().settings(arrays="torch", cases=16, isolate=isolate)
    said = (
        "shakedown checks `grad_log_probs`, which the function returns, and does not ask autograd"
    )
    report = contract.check(loss_and_gradient(1.0))
    assert [text for text in report.warnings if said in text] == [f"{said} for it"]
    assert "gradient" in {one["id"] for one in report.invariants if one["status"] == "pass"}
    report = contract.report(loss_and_gradient(2.0))
    assert "gradient" in [finding.invariant for finding in report.findings], report.text


def test_the_gradients_of_a_list_are_those_that_the_function_returns():
    def returned(factor):
        def function(micro_batches):
            masks = [one["mask"] for one in micro_batches]
            count = sum(mask.sum() for mask in masks)
            losses = [one["token_losses"].detach() for one in micro_batches]
            total = sum(part[mask].sum() for part, mask in zip(losses, masks))
            share = [{"token_losses": factor * mask / count.clamp(min=1)} for mask in masks]
            return {"loss": total / count.clamp(min=1), "grad_micro_batches": share}

        return function

    contract = shakedown.AccumulatedLoss().settings(arrays="torch", cases=16)
    assert contract.check(returned(1.0))
    found = contract.report(returned(0.5)).findings
    assert "gradient-sums-to-one" in [finding.invariant for finding in found]


def test_a_returned_gradient_that_is_not_checked_is_named():
    contract = shakedown.PolicyLoss().settings(arrays="torch", cases=16)
    report = contract.report(loss_and_gradient(1.0, name="grad_advantages"))
    said = "shakedown does not check `grad_advantages`, which the function returns: "
    assert said + "the contract has `grad_log_probs`" in report.warnings
    assert "gradient" in [finding.invariant for finding in report.findings]

    def by_numbers(values, old_values, returns, mask):
        return {"loss": 0.0, "grad_values": values}

    report = shakedown.ValueLoss().settings(arrays="list", cases=16).report(by_numbers)
    said = "shakedown does not check `grad_values`, which the function returns: "
    assert said + "that needs `arrays: torch`" in report.warnings
