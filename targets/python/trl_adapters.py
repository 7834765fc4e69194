"""The functions of an installed TRL, under the names of the contracts.

Nothing is copied from the library. Where it has a function, the function is called; where the
arithmetic stands in the middle of a trainer's method, `statements` runs the lines of the installed
file. What is ours are names, shapes and the size of a group, and each docstring says what more.
"""

import ast
import inspect
import os
import textwrap
from types import SimpleNamespace

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
import trl
from accelerate import PartialState
from trl.experimental.async_grpo.async_rollout_worker import (
    RolloutGroup,
    TrainingSequence,
    _AsyncRolloutLoop,
)
from trl.experimental.cpo import CPOTrainer
from trl.experimental.sdpo import SDPOTrainer
from trl.trainer import utils
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.rloo_trainer import RLOOTrainer

# `scale` of the contract: `scale_rewards` of the trainers.
SCALE_REWARDS = {"std": "group", "batch-std": "batch", "none": "none"}


def statements(method, after, before):
    """The statements of `method` between its first assignments to the names `after` and `before`.

    They are compiled from the installed file, so a traceback shows its lines. The result takes the
    values of the names that they read, and gives `advantages`.
    """
    method = inspect.unwrap(method)
    lines, start = inspect.getsourcelines(method)
    tree = ast.increment_lineno(ast.parse(textwrap.dedent("".join(lines))), start - 1)
    body = tree.body[0].body
    names = [
        [target.id for target in getattr(statement, "targets", []) if isinstance(target, ast.Name)]
        for statement in body
    ]
    where = [next((i for i, n in enumerate(names) if name in n), -1) for name in (after, before)]
    if not -1 < where[0] < where[1]:
        what = f"{method.__qualname__} of trl {trl.__version__}"
        raise ImportError(f"{what} no longer assigns `{after}` and then `{before}`")
    chosen = ast.Module(body[where[0] + 1 : where[1]], type_ignores=[])
    code = compile(chosen, inspect.getsourcefile(method), "exec")

    def run(**values):
        # One dict for both scopes: a comprehension in these lines must see their variables.
        scope = {**method.__globals__, **values}
        exec(code, scope)
        return scope["advantages"]

    return run


GRPO = statements(GRPOTrainer._generate_and_score_completions, "rewards_per_func", "process_slice")
RLOO = statements(RLOOTrainer._generate_and_score_completions, "rewards_per_func", "process_slice")
SDPO = statements(SDPOTrainer._prepare_training_batch, "rewards_per_func", "local_batch_size")


def trainer(method, rewards, groups, **settings):
    """Runs `method` as in training, with one reward function of weight 1."""
    size = len(rewards) // len(groups.unique())
    self = SimpleNamespace(
        num_generations=size, reward_weights=torch.ones(1), reward_funcs=[None], **settings
    )
    rewards_per_func = rewards.unsqueeze(1)  # (completions, reward functions)
    return method(self=self, mode="train", device=rewards.device, rewards_per_func=rewards_per_func)


def grpo(rewards, groups, scale):
    """`GRPOTrainer`, with the default `multi_objective_aggregation`."""
    settings = {"multi_objective_aggregation": "sum_then_normalize"}
    return trainer(GRPO, rewards, groups, scale_rewards=SCALE_REWARDS[scale], **settings)


def rloo(rewards, groups):
    """`RLOOTrainer`, without clipping of rewards, KL or normalisation of advantages."""
    settings = {"reward_clip_range": None, "beta": 0.0, "normalize_advantages": False}
    return trainer(RLOO, rewards, groups, **settings)


def sdpo(rewards, groups, scale):
    """`SDPOTrainer` (experimental)."""
    return trainer(SDPO, rewards, groups, scale_rewards=SCALE_REWARDS[scale])


async def async_grpo(rewards, groups):
    """The whole method `_score_group` of the asynchronous GRPO (experimental), group by group.

    It takes Python floats and computes in float64. Ours: what a rollout would have brought along.
    """
    PartialState(cpu=True)  # its logger asks for one
    advantages = torch.empty_like(rewards)
    for group in groups.unique():
        rows = groups == group
        samples = await score_group(rewards[rows].tolist())
        advantages[rows] = rewards.new_tensor([sample.advantage for sample in samples])
    return advantages


def score_group(rewards):
    async def reward_function(**_):
        return rewards

    n = len(rewards)
    loop = SimpleNamespace(
        reward_funcs=[reward_function],
        reward_func_names=["reward"],
        _env_reward_types=[],
        _provides_rollout_reward=False,
    )
    sequence = TrainingSequence([0], [1], [0.0], rollout_id="")
    group = RolloutGroup(
        prompts=[[]] * n,
        reward_kwargs={},
        completions=[[]] * n,
        completions_ids=[[]] * n,
        completions_sequences=[[sequence]] * n,
        tool_call_counts=[0] * n,
        tool_failure_counts=[0] * n,
        model_version=0,
        group_id=0,
        env_rewards=[None] * n,
        rollout_rewards=[None] * n,
    )
    return _AsyncRolloutLoop._score_group(loop, group)


def nanstd(rewards, groups, epsilon):
    """`nanstd`, for groups of any size and order. Ours: (r - mean) / (nanstd + epsilon)."""
    advantages = torch.empty_like(rewards)
    for group in groups.unique():
        rows = groups == group
        centred = rewards[rows] - rewards[rows].nanmean()
        advantages[rows] = centred / (utils.nanstd(rewards[rows]) + epsilon)
    return advantages.nan_to_num(nan=0.0)


def selective_log_softmax(logits, tokens, temperature):
    """`selective_log_softmax`; f32 and f64 take one branch of it, bf16 and f16 another."""
    return utils.selective_log_softmax(logits, tokens, temperature=temperature)


def cpo(logits, tokens):
    """`CPOTrainer.get_batch_logps` (experimental), which shifts by one.

    It gives the sum of a row, so two columns at a time are the log-probability of one token.
    """
    windows = [slice(t, t + 2) for t in range(tokens.shape[1] - 1)]
    columns = [CPOTrainer.get_batch_logps(logits[:, w], tokens[:, w]) for w in windows]
    return torch.stack(columns, dim=1) if columns else logits[:, :0, 0]


def fused_lm_head(logits, tokens, temperature, tile=utils._CHUNKED_LOGPROB_CHUNK_SIZE):
    """The kernel of `add_fused_lm_head`, from which GRPO, RLOO, DPO and KTO get log-probabilities.

    It projects hidden states itself. Ours: one-hot hidden states and `logits` as the weights, a
    product without rounding.
    """
    rows, targets = logits.flatten(0, 1), tokens.flatten()
    # 0 * inf is NaN, so rows with -inf are projected one at a time.
    size = len(rows) if rows.isfinite().all() else 1
    log_probs = []
    for weight, target in zip(rows.split(size), targets.split(size), strict=True):
        hidden = torch.eye(len(weight), dtype=logits.dtype, device=logits.device)
        no_bias, no_softcap, scale, outputs = None, None, 1.0, ("log_probs",)
        log_probs += utils._ChunkedLogProbFunction.apply(
            hidden, weight.T, no_bias, target, temperature, tile, no_softcap, scale, outputs
        )[:1]
    return torch.cat(log_probs).view(tokens.shape)


def fused_lm_head_in_tiles(logits, tokens, temperature):
    """The same in tiles of two tokens of the vocabulary (a real vocabulary has tiles of 32,768)."""
    return fused_lm_head(logits, tokens, temperature, tile=2)
