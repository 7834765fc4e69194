"""The contracts, each a class that takes its options. Written by `generate.py`."""

from __future__ import annotations

from typing import Literal, Mapping, Sequence

from ._contract import Contract

__all__ = [
    "RewardFunction",
    "LengthPenalty",
    "CompletionDecoder",
    "AnswerExtractor",
    "TokenDecoder",
    "CompletionMask",
    "SamplingFilter",
    "GroupAdvantage",
    "OutcomeAdvantage",
    "Gae",
    "RolloutGae",
    "Returns",
    "Whiten",
    "TokenLogProbs",
    "TokenEntropy",
    "KlEstimate",
    "PolicyLoss",
    "ValueLoss",
    "PreferenceLoss",
    "AccumulatedLoss",
    "PolicyUpdate",
    "BY_ID",
]


class RewardFunction(Contract):
    """A score for each completion: right or wrong, well-formed or not.

    Nobody can say what a reward function must give, but how its scores must compare: the right
    answer in the declared form gets the most there is, a wrong one gets less, and what has nothing
    to do with the answer changes nothing. A policy finds every gap in this within a few hundred
    steps, and learns the gap.

    Inputs. `N` completions: all `[N]`.
        prompts: text [N]
            What the policy was asked.
        completions: text [N]
            What it said.
        answers: text [N]
            The gold answers.

    Outputs. `[N]`.
        rewards: float [N]
            The score of each completion.

    Options.
        judges:
            `correctness`, `format`, `incremental-format` or `none`: what the score is about, and so
            which relations must hold.
        template:
            How a well-formed completion looks: a text in which `{reasoning}` and `{answer}` are
            replaced, and nothing else.
        answer_family:
            `integer`, `decimal`, `text` or `latex`: the gold answers.
        range:
            The least and the largest score, `[lo, hi]`.
        unscored:
            `refuse` or `allow`: whether None or NaN may say that a completion cannot be scored.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "reward-function"
    inputs = ("prompts", "completions", "answers")

    def __init__(
        self,
        *,
        judges: Literal["correctness", "format", "incremental-format", "none"] = "correctness",
        template: str = "<reasoning>\n{reasoning}\n</reasoning>\n<answer>\n{answer}\n</answer>",
        answer_family: Literal["integer", "decimal", "text", "latex"] = "integer",
        range: Sequence[float] = (0.0, 1.0),
        unscored: Literal["refuse", "allow"] = "refuse",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class LengthPenalty(Contract):
    """What a completion pays for its length.

    Completions that run into the length limit are cut and carry no answer, so trainers take
    something off the reward near the limit, along a line, a cosine or a step. An error of one
    token, or a line that starts at the wrong end of the buffer, punishes completions that did
    nothing wrong, or none at all.

    Inputs. `N` completions: `[N]`.
        lengths: int [N]
            How long each completion is.

    Outputs. `[N]`.
        rewards: float [N]
            What is added to the reward of each completion.

    Options.
        shape:
            `linear-overlong` (0, a line through the buffer, -1 beyond the limit),
            `linear-unbounded` (the line goes on beyond the limit), `cosine` (from `max` down to
            `min` at the limit) or `step` (0, -1 beyond the limit).
        max_length:
            L, the limit in tokens, at least 1.
        buffer:
            C, the tokens below the limit in which a linear penalty grows, 0 to `max_length`;
            `linear-unbounded` needs 1.
        min:
            What `cosine` gives at the limit, -100 to 100.
        max:
            What `cosine` gives for an empty completion, -100 to 100; may be less than `min`.
        factor:
            Multiplies the result, 0 to 100.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "length-penalty"
    inputs = ("lengths",)

    def __init__(
        self,
        *,
        shape: Literal["linear-overlong", "linear-unbounded", "cosine", "step"] = "linear-overlong",
        max_length: int = 64,
        buffer: int = 16,
        min: float = 0.5,
        max: float = 1.0,
        factor: float = 1.0,
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class CompletionDecoder(Contract):
    """The text that a reward function sees, made of what the model produced.

    Between the model and the reward stands a decoder: it removes special tokens, and in some
    pipelines the reasoning. What it loses is not scored, what it leaves is scored with the answer,
    and a text that it blanks is scored as no answer at all. None of this raises.

    Artefacts are removed until none is left, so also one that appears when another goes. `think`
    says what becomes of reasoning: kept; every closed block removed, with a closing tag that has no
    opener closing a block that began in the prompt, and an unclosed block removed to the end
    (`strip-closed`); or only what follows the last closing tag kept, where a text without one stays
    (`last-segment`) or gives nothing (`strip-always`). Where no honest convention exists (nested or
    overlapping blocks, a closing tag beside closed blocks, a marker that appears only once an
    artefact is gone) nothing is expected but that a text comes, without artefacts, made of pieces
    of the input.

    Inputs. `N` completions: `[N]`.
        completions: text [N]
            What the model produced, special tokens and all.

    Outputs. `[N]`.
        texts: text [N]
            What the reward function sees of each.

    Options.
        artefacts:
            The special tokens that must not survive; removed until none is left.
        keep:
            The markers that must survive.
        think:
            What becomes of reasoning: `keep` (it is content), `strip-closed` (every closed block
            goes, an unclosed one to the end), `strip-always` (what follows the last closing tag,
            else nothing) or `last-segment` (what follows the last closing tag, else everything).
        think_tags:
            The opening and the closing tag of reasoning.
        trim:
            `True` or `False`: whether outer white space may go, also that of what is left beside a
            removed block.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "completion-decoder"
    inputs = ("completions",)

    def __init__(
        self,
        *,
        artefacts: Sequence[str] = ("<pad>", "<eos>"),
        keep: Sequence[str] = ("<answer>", "</answer>"),
        think: Literal["keep", "strip-closed", "strip-always", "last-segment"] = "keep",
        think_tags: Sequence[str] = ("<think>", "</think>"),
        trim: bool = True,
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class AnswerExtractor(Contract):
    """The answer that a reward function compares with the gold answer, cut out of a completion.

    A model is asked to mark its answer: with a tag, in a box of LaTeX, after four hashes. What
    stands between the marks goes to the verifier as it is. A sign or a brace lost here, an answer
    taken from an example in the reasoning, or an exception on a completion without an answer,
    rewards wrong completions and punishes right ones.

    Inputs. `N` completions: `[N]`.
        texts: text [N]
            The completions, as text.

    Outputs. `[N]`.
        answers: text [N]
            The answer of each completion.

    Options.
        format:
            `xml-tag` (between `<answer>` and `</answer>`), `boxed` (in the matched braces of
            `\\boxed{…}`) or `hash` (the rest of the line after `####`).
        tag:
            The name of the tag of `xml-tag`: letters, digits, `_`, `-`, not a digit first.
        pick:
            `last` or `first`: which of several answers is taken.
        missing:
            `None`, `empty` (the empty text) or `whole` (the whole text): what a completion without
            an answer gives.
        trim:
            `True` or `False`: whether white space around the answer goes.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "answer-extractor"
    inputs = ("texts",)

    def __init__(
        self,
        *,
        format: Literal["xml-tag", "boxed", "hash"] = "xml-tag",
        tag: str = "answer",
        pick: Literal["last", "first"] = "last",
        missing: Literal["null", "empty", "whole"] = "null",
        trim: bool = True,
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class TokenDecoder(Contract):
    """The text of the tokens that a model produced.

    in: `tokens`, integers `[N, T]` → out: `texts`, one string a row

    A rollout gives token ids; the reward reads text. Tokens are pieces of bytes, not of text: a
    character may be spread over several of them. A detokeniser that works token by token, tidies
    up spaces, or takes special tokens out by their names changes what the reward sees, and no
    reward function can notice.

    Options:

    - `vocabulary`, a map from id to piece: the pieces that are generated, in the printable alphabet
    of byte-level vocabularies (`Ġ` is a space); those of special tokens as plain text.
    - `specials`, ids: the special tokens, `pad` and `eos` among them.
    - `pad`, `eos`, ids: may be equal.
    - `skip_special`, `true` or `false`: whether special tokens are left out of the text.
    - `padding_side`, `right` or `left`: where shorter rows are padded.

    What must hold: the text is that of the pieces' bytes one after the other, special tokens apart,
    byte for byte: nothing is trimmed, tidied up, normalised or cut, not at an `eos` in the middle
    either; padding on either side changes nothing (`skip_special`); a batch gives what its rows
    give alone; bytes that are no UTF-8, as where a completion is cut in the middle of a character,
    become U+FFFD (one or several) or nothing, never an exception, and leave all that stands around
    them; the text of two sequences that each end a character is the text of both [one after the
    other]. Where a skipped special token stands inside a character, its halves may be joined or
    not.

    To check a tokenizer of your own, declare some of its pieces: those of `get_vocab()`, with the
    ids they have. Only these are generated, so a few dozen do; with halves of characters and spaces
    among them the invariants have something to say.

    Inputs. `N` completions of `T` tokens: `[N, T]`.
        tokens: int [N, T]
            The ids of the tokens.

    Outputs. `[N]`.
        texts: text [N]
            The text of each completion.

    Options.
        vocabulary:
            The pieces that are generated, by id: in the printable alphabet of byte-level
            vocabularies, as `get_vocab()` gives them (`Ġ` is a space); special ones as plain text.
        specials:
            The ids of special tokens, `pad` and `eos` among them.
        pad:
            The id that fills shorter rows.
        eos:
            The id that ends a completion; may be `pad`.
        skip_special:
            `True` or `False`: whether special tokens are left out of the text.
        padding_side:
            `right` or `left`: where shorter rows are padded.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "token-decoder"
    inputs = ("tokens",)

    def __init__(
        self,
        *,
        vocabulary: Mapping[int, str] = {
            0: "<pad>",
            1: "<eos>",
            2: "<|im_end|>",
            3: "a",
            4: "b",
            5: "Ġ",
            6: "Ġthe",
            7: ".",
            8: "Ċ",
            9: "č",
            10: "Ā",
            11: "<",
            12: "eos",
            13: ">",
            14: "Ã",
            15: "©",
            16: "Ã©",
            17: "e",
            18: "Ìģ",
            19: "ðŁ",
            20: "ĻĤ",
            21: "Ġ'",
            22: "s",
            23: "ĠĠ",
            24: "ï»¿",
            25: "1",
        },
        specials: Sequence[int] = (0, 1, 2),
        pad: int = 0,
        eos: int = 1,
        skip_special: bool = True,
        padding_side: Literal["right", "left"] = "right",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class CompletionMask(Contract):
    """Which tokens of a completion were sampled: all up to its end-of-sequence token, and no pads.

    Every sum over tokens is taken under this mask. A mask that loses the end-of-sequence token
    trains a model that never stops, one that counts pads trains on them, and one that takes an id
    for an end because it is also the pad, or overlooks the second of two, does both in some rows
    only.

    The output is an array of flags, 0 or 1, as floats, integers or booleans. `T` may be 0.

    Inputs. `N` completions of `T` tokens, of which there may be none: `[N, T]`.
        tokens: int [N, T]
            The token ids of each completion, filled up to the same length.

    Outputs. `[N, T]`.
        mask: float [N, T]
            1 where the token was sampled, else 0.

    Options.
        eos:
            The ids that end a completion, one at least.
        pad:
            The id that fills a row up; may be one of `eos`, and then a pad ends a row too.
        include_eos:
            `True` or `False`: whether the token that ends a completion counts.
        unfinished:
            What counts in a row without an id of `eos`: `keep` (what stands before the pads at its
            end), `all` (every column) or `drop` (nothing).
        empty:
            `generate` or `avoid`: whether batches without a column (T = 0) are generated, of which
            there are none where a completion has its end at least.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "completion-mask"
    inputs = ("tokens",)

    def __init__(
        self,
        *,
        eos: Sequence[int] = (2,),
        pad: int = 0,
        include_eos: bool = True,
        unfinished: Literal["keep", "all", "drop"] = "keep",
        empty: Literal["generate", "avoid"] = "avoid",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class SamplingFilter(Contract):
    """The distribution that is sampled from: a softmax of filtered logits.

    A rollout is drawn from this distribution and scored with another one wherever the two do not
    agree on temperature and filters. It is checked as a distribution: nothing is sampled, so a
    finding needs no statistics.

    Tokens of equal logits at the end of what a filter keeps are a choice of the implementation:
    all of them, some, or as few as the filter asks for. So is the token at which the mass comes
    within rounding of `top_p`. One boundary is exact in any arithmetic, and decided: 4 or 16 logits
    of 0 and no others, with `top_p` on a prefix sum, leave `top_p`·V of them, or all.

    Inputs. `N` rows over a vocabulary of `V`: `[N, V]`.
        logits: float [N, V]
            What the model gave; `-inf` where a token cannot come, which is never a whole row.

    Outputs. `[N, V]`.
        probs: float [N, V]
            The probability of each token to be drawn.

    Options.
        temperature:
            A number > 0 that divides the logits.
        top_k:
            `None`, or a whole number ≥ 1: so many of the most likely tokens are kept.
        top_p:
            `None`, or a number from 0 to 1: of what top-k left, renormalised, the smallest set of
            most likely tokens with this mass is kept.
        min_p:
            `None`, or a number from 0 to 1: tokens less likely than this share of the most likely
            one are taken away.
        order:
            `temperature-first` (temperature, top-k, top-p, min-p) or `filters-first` (the
            temperature last).
        min_keep:
            A whole number ≥ 1: so many tokens survive every filter, or all that there are.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "sampling-filter"
    inputs = ("logits",)

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        order: Literal["temperature-first", "filters-first"] = "temperature-first",
        min_keep: int = 1,
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class GroupAdvantage(Contract):
    """One outcome reward per completion, normalised inside its group.

    GRPO, Dr. GRPO, RLOO, and REINFORCE with a group baseline turn the rewards of the completions
    of one prompt into advantages: what is taken off (the baseline) and what it is divided by (the
    scale) are conventions, and every library has its own.

    Inputs. `N` completions: rewards `[N]`, groups `[N]`.
        rewards: float [N]
            One reward per completion. NaN where it could not be scored (`unscored: exclude`).
        groups: int [N]
            The group of each completion; completions of one prompt share a number.

    Outputs. `N` completions: advantages `[N]`.
        advantages: float [N]
            One advantage per completion.

    Options.
        baseline:
            `mean`, `leave-one-out` or `none`: what is taken off a reward.
        scale:
            `std`, `batch-std`, `loo-std` or `none`: divide by the deviation of the group's rewards,
            of the whole batch's, of the other rows of the group (rows for which that is 0 or
            undefined are not divided), or not at all.
        ddof:
            `1` or `0`: unbiased or biased variance.
        epsilon:
            A number ≥ 0 that protects the division.
        epsilon_mode:
            `add` (σ + ε) or `clamp` (max(σ, ε)).
        singleton:
            `zero`, `reward` or `avoid`: what a group of one completion gets. Also a group of which
            `unscored: exclude` leaves one row, and with `batch-std` a batch of one row. With
            `baseline: none` it is a row like any other.
        layout:
            `any` or `contiguous` (equal-sized groups in adjacent rows).
        unscored:
            `avoid` or `exclude`: NaN rewards are never generated, or are left out of the statistics
            and get advantage 0.
        reward_range:
            `[lo, hi]`: the rewards generated.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "group-advantage"
    inputs = ("rewards", "groups")

    def __init__(
        self,
        *,
        baseline: Literal["mean", "leave-one-out", "none"] = "mean",
        scale: Literal["std", "batch-std", "loo-std", "none"] = "std",
        ddof: int = 1,
        epsilon: float = 0.0001,
        epsilon_mode: Literal["add", "clamp"] = "add",
        singleton: Literal["zero", "reward", "avoid"] = "zero",
        layout: Literal["any", "contiguous"] = "any",
        unscored: Literal["avoid", "exclude"] = "avoid",
        reward_range: Sequence[float] = (-10.0, 10.0),
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class OutcomeAdvantage(Contract):
    """One outcome for each completion, given on its tokens, normalised inside its group.

    Trainers that keep rewards token by token write the score of a completion to its last token, or
    spread it; what counts is the sum under the mask. The advantage of that outcome is the one of
    `group-advantage`, and it stands at every token of the row.

    Inputs. `N` rows of `T` tokens: token_rewards and mask `[N, T]`, groups `[N]`.
        token_rewards: float [N, T]
            The reward of each token; the outcome of a row is their sum under the mask. NaN where a
            row could not be scored (`unscored: exclude`).
        mask: bool [N, T]
            True where the token counts.
        groups: int [N]
            The group of each row; completions of one prompt share a number.

    Outputs. `[N, T]`.
        advantages: float [N, T]
            The advantage of its row, at each token.

    Options.
        baseline:
            `mean`, `leave-one-out` or `none`: what is taken off an outcome.
        scale:
            `std`, `batch-std`, `loo-std` or `none`: divide by the deviation of the group's
            outcomes, of the whole batch's, of the other rows of the group (rows for which that is 0
            or undefined are not divided), or not at all.
        ddof:
            `1` or `0`: unbiased or biased variance.
        epsilon:
            A number ≥ 0 that protects the division.
        epsilon_mode:
            `add` (σ + ε) or `clamp` (max(σ, ε)).
        singleton:
            `zero`, `reward` (its outcome) or `avoid`: what a group of one row gets. Also a group of
            which `unscored` and `empty_rows: exclude` leave one row, and with `batch-std` a batch
            of one row. With `baseline: none` it is a row like any other.
        layout:
            `any` or `contiguous` (equal-sized groups in adjacent rows).
        unscored:
            `avoid` or `exclude`: NaN rewards that count are never generated, or their rows are left
            out of the statistics and get advantage 0.
        reward_range:
            `[lo, hi]`: the outcomes generated.
        empty_rows:
            `count` or `exclude`: whether a row without a token has a part in the statistics of its
            group, with outcome 0.
        holes:
            `True` or `False`: whether a mask may have gaps inside a row.
        masked_values:
            `finite` or `any`: what may stand under the mask.
        masked_output:
            `zero` or `any`: what stands at masked positions of the output.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "outcome-advantage"
    inputs = ("token_rewards", "mask", "groups")

    def __init__(
        self,
        *,
        baseline: Literal["mean", "leave-one-out", "none"] = "mean",
        scale: Literal["std", "batch-std", "loo-std", "none"] = "std",
        ddof: int = 1,
        epsilon: float = 0.0001,
        epsilon_mode: Literal["add", "clamp"] = "add",
        singleton: Literal["zero", "reward", "avoid"] = "zero",
        layout: Literal["any", "contiguous"] = "any",
        unscored: Literal["avoid", "exclude"] = "avoid",
        reward_range: Sequence[float] = (-10.0, 10.0),
        empty_rows: Literal["count", "exclude"] = "count",
        holes: bool = False,
        masked_values: Literal["finite", "any"] = "finite",
        masked_output: Literal["zero", "any"] = "zero",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class Gae(Contract):
    """Generalised advantage estimation over the tokens of completions.

    PPO with a critic credits each token with the discounted sum of the TD errors that follow it.
    The recursion runs from the end of a row to its start: the value after the last token is 0, a
    gap between two turns is carried over or costs time as declared, and nothing that stands under
    the mask takes part. The critic's targets, `returns`, are made before any whitening.

    Inputs. `N` rows of `T` tokens: all `[N, T]`.
        rewards: float [N, T]
            The reward of each token.
        values: float [N, T]
            The critic's value of the state in which each token is chosen.
        mask: bool [N, T]
            True where the token counts.

    Outputs. Both `[N, T]`.
        advantages: float [N, T]
            The advantage of each token, whitened where that is declared.
        returns: float [N, T]
            The critic's target for each token: the advantage before whitening, and the value.

    Options.
        gamma:
            The discount of one step, 0 to 1.
        lam:
            λ, how far ahead rewards are trusted over values: 0 (TD error) to 1 (return − value).
        masked:
            `skip` (masked tokens are no transitions: the recursion carries over them) or `zero`
            (they are steps with reward and value 0: time passes).
        whiten:
            `False` or `True`: whether the advantages are whitened over the tokens of the batch.
        empty_mask:
            `zero`, `nan`, `refuse` or `avoid`: what whitening gives for fewer than two tokens.
        holes:
            `False` or `True`: whether a mask may have gaps inside a row.
        masked_values:
            `finite` or `any`: what may stand under the mask.
        masked_output:
            `zero` or `any`: what stands at masked positions of the outputs.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "gae"
    inputs = ("rewards", "values", "mask")

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        lam: float = 0.95,
        masked: Literal["skip", "zero"] = "skip",
        whiten: bool = False,
        empty_mask: Literal["zero", "nan", "refuse", "avoid"] = "zero",
        holes: bool = False,
        masked_values: Literal["finite", "any"] = "finite",
        masked_output: Literal["zero", "any"] = "zero",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class RolloutGae(Contract):
    """Generalised advantage estimation over rollouts of environments that start anew.

    A rollout is a window of `T` steps of `E` environments. Episodes end inside it, and the window
    ends inside an episode. At the end of an episode nothing of the next one may come in; at the
    end of the window the value of the state that the last step led to stands for what follows.

    Inputs. `T` steps of `E` environments: `[T, E]`, and `[E]` for what follows the last step.
        rewards: float [T, E]
            The reward of each step, `[T, E]`.
        values: float [T, E]
            The critic's value of the state in which each step was taken, `[T, E]`.
        dones: bool [T, E]
            Ends or beginnings of episodes, as `done_convention` says, `[T, E]`.
        last_values: float [E]
            The value of the state that the last step led to, `[E]`.
        last_dones: bool [E]
            The flags after the last step, `[E]`: the last row of `dones` once more (`after`), or
            the row that would follow (`before`).

    Outputs. Both `[T, E]`.
        advantages: float [T, E]
            The advantage of each step.
        returns: float [T, E]
            The critic's target for each step: the advantage and the value.

    Options.
        gamma:
            The discount of one step, 0 to 1.
        lam:
            λ, how far ahead rewards are trusted over values: 0 (TD error) to 1 (return − value).
        done_convention:
            `after` (row t says that step t ended its episode, and `last_dones` equals the last row)
            or `before` (row t says that step t starts an episode, and `last_dones` is the row that
            would follow).
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "rollout-gae"
    inputs = ("rewards", "values", "dones", "last_values", "last_dones")

    def __init__(
        self,
        *,
        gamma: float = 0.99,
        lam: float = 0.95,
        done_convention: Literal["after", "before"] = "after",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class Returns(Contract):
    """The discounted return of each token: its reward and the discounted ones that follow.

    REINFORCE++ and PPO without a critic weigh each token by what came after it. The recursion runs
    from the end of a row to its start, and must neither take in what stands under the mask nor
    stop at a gap: a tool's output in the middle of a completion carries the return over.

    Inputs. `N` rows of `T` tokens: both `[N, T]`.
        rewards: float [N, T]
            The reward of each token.
        mask: bool [N, T]
            True where the token counts.

    Outputs. `[N, T]`.
        returns: float [N, T]
            The return of each token.

    Options.
        gamma:
            The discount of one step, 0 to 1.
        masked:
            `skip` (masked tokens are no steps: the return carries over them) or `zero` (they are
            steps with reward 0: time passes).
        holes:
            `True` or `False`: whether a mask may have gaps inside a row.
        masked_values:
            `finite` or `any`: what may stand under the mask.
        masked_output:
            `zero` or `any`: what stands at masked positions of the output.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "returns"
    inputs = ("rewards", "mask")

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        masked: Literal["skip", "zero"] = "skip",
        holes: bool = False,
        masked_values: Literal["finite", "any"] = "finite",
        masked_output: Literal["zero", "any"] = "zero",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class Whiten(Contract):
    """Values shifted to mean 0 and stretched to variance 1, over the tokens of a mask.

    PPO whitens advantages and sometimes rewards; REINFORCE++ whitens returns over the batch. What
    is under the mask must be no part of mean and deviation, and what is too little for a deviation
    needs a rule of its own.

    Inputs. `N` rows of `T` tokens: both `[N, T]`.
        values: float [N, T]
            The value of each token.
        mask: bool [N, T]
            True where the token counts.

    Outputs. `[N, T]`.
        whitened: float [N, T]
            The whitened value of each token.

    Options.
        ddof:
            `1` or `0`: unbiased or biased variance.
        epsilon:
            A number ≥ 0 inside the root that protects the division. With 0 no set of equal values
            is generated.
        epsilon_mode:
            `add` (√(var + ε)) or `clamp` (√max(var, ε)).
        shift_mean:
            `True` or `False`: whether the mean becomes 0, or is added again after the division.
        empty_mask:
            `zero`, `nan`, `refuse` or `avoid`: what fewer than `ddof` + 1 tokens give. `zero` keeps
            the value where the mean is kept (`shift_mean: false`).
        holes:
            `True` or `False`: whether a mask may have gaps inside a row.
        masked_values:
            `finite` or `any`: what may stand under the mask.
        masked_output:
            `zero` or `any`: what stands at masked positions of the output.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "whiten"
    inputs = ("values", "mask")

    def __init__(
        self,
        *,
        ddof: int = 1,
        epsilon: float = 1e-08,
        epsilon_mode: Literal["add", "clamp"] = "add",
        shift_mean: bool = True,
        empty_mask: Literal["zero", "nan", "refuse", "avoid"] = "zero",
        holes: bool = False,
        masked_values: Literal["finite", "any"] = "finite",
        masked_output: Literal["zero", "any"] = "zero",
        rows: Literal["independent", "batch"] = "batch",
        deterministic: bool = True,
    ) -> None: ...


class TokenLogProbs(Contract):
    """The log-probability of each token under the model's logits.

    Policy, old and reference log-probabilities all come from here: divide the logits by the
    temperature, take the log-softmax, pick the token that was sampled. Ratios, KL and losses are
    made of differences of these numbers, so an error of 0.1 in one of them is an error of 10% in
    a gradient.

    Inputs. `N` rows of `T` tokens over a vocabulary of `V`: logits `[N, T, V]`, tokens `[N, T]`.
        logits: float [N, T, V]
            What the model gave. `-inf` where a token cannot come; never for a scored token.
        tokens: int [N, T]
            The tokens to score, 0 to `V - 1`.

    Outputs. log_probs `[N, T]`, or `[N, T - 1]` with `shift: next`; grad_logits `[N, T, V]`.
        log_probs: float [N, T]
            The log-probability of each scored token.
        grad_logits: float [N, T, V], optional
            The gradient of the summed log-probabilities.

    Options.
        temperature:
            A number > 0 that divides the logits.
        shift:
            `none` (logits at t score the token at t) or `next` (logits at t score the token at t +
            1, and the output has T - 1 columns).
        gradient:
            `True` or `False`: whether the gradient by the logits is part of the contract.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "token-log-probs"
    inputs = ("logits", "tokens")

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        shift: Literal["none", "next"] = "none",
        gradient: bool = True,
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class TokenEntropy(Contract):
    """The entropy of the model's distribution at each position.

    It is the first curve to look at in a run (a collapse shows here before the reward falls), and
    a bonus in the loss. It comes from logits over the temperature, in one of two forms:
    -Σ p·log p, or logsumexp(z) - Σ p·z, which cancels two large numbers.

    Inputs. `N` rows of `T` tokens over a vocabulary of `V`: `[N, T, V]`.
        logits: float [N, T, V]
            What the model gave. `-inf` where a token cannot come, unless `neg_inf: avoid`.

    Outputs. entropy `[N, T]`; grad_logits `[N, T, V]`.
        entropy: float [N, T]
            The entropy at each position.
        grad_logits: float [N, T, V], optional
            The gradient of the summed entropies.

    Options.
        temperature:
            A number > 0 that divides the logits.
        neg_inf:
            `avoid` (-inf logits are never generated), `zero` (they contribute 0) or `nan` (they
            make the entropy of their position NaN).
        gradient:
            `True` or `False`: whether the gradient by the logits is part of the contract.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "token-entropy"
    inputs = ("logits",)

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        neg_inf: Literal["avoid", "zero", "nan"] = "avoid",
        gradient: bool = True,
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class KlEstimate(Contract):
    """The per-token estimate of how far the policy has moved from the reference.

    The tokens are sampled from the current policy, and each estimator of KL(π‖ref) is a function of
    one number, the log-ratio `d = log_probs - ref_log_probs`. Its direction, a factor of 2, the
    clamps and the gradient differ between libraries, and a wrong one still looks like a KL: it is 0
    at the start and grows.

    Inputs. `N` rows of `T` tokens, sampled from the current policy: both `[N, T]`.
        log_probs: float [N, T]
            The log-probability of each token under the current policy.
        ref_log_probs: float [N, T]
            The same under the reference.

    Outputs. Both `[N, T]`.
        kl: float [N, T]
            The estimate at each token.
        grad_log_probs: float [N, T], optional
            The gradient of the summed estimates.

    Options.
        estimator:
            `k3` (e^{-d} - 1 + d), `k1` (d), `k2` (d²/2) or `abs` (|d|), where d is `log_probs` -
            `ref_log_probs`.
        log_ratio_clamp:
            `None`, or c > 0: d is clamped to ±c first. Beyond it the value is that at ±c, and the
            derivative 0.
        extreme_ratios:
            `avoid` (generated log-ratios stay within ±80, at f16 within ±10) or `finite` (up to
            ±120 wherever the exact value and gradient are finite in the dtype); beyond that as far
            as a clamp needs to act.
        clamp:
            `None`, or `[lo, hi]` with lo ≤ 0 ≤ hi: the result is clamped, and its derivative is 0
            beyond.
        gradient:
            `value` (the derivative of the value), `k2` (d, straight through and never clamped) or
            `none` (no part of the contract).
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "kl-estimate"
    inputs = ("log_probs", "ref_log_probs")

    def __init__(
        self,
        *,
        estimator: Literal["k3", "k1", "k2", "abs"] = "k3",
        log_ratio_clamp: float | None = None,
        extreme_ratios: Literal["avoid", "finite"] = "avoid",
        clamp: Sequence[float] | None = None,
        gradient: Literal["value", "k2", "none"] = "value",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class PolicyLoss(Contract):
    """The loss of a policy gradient step: from log-probabilities and advantages to one number.

    PPO, GRPO, DAPO, Dr. GRPO, GSPO, CISPO and REINFORCE differ in four choices: what weights a
    token, where the weight is clipped, how the tokens are added up, and what holds the policy near
    a reference. Each choice is an option here. Training follows the gradient, so a right value
    with a wrong gradient is as wrong as a wrong value.

    Inputs. `N` rows of `T` tokens: all `[N, T]`; advantages `[N]` with `advantage_shape: row`.
        log_probs: float [N, T]
            The log-probabilities of the policy that learns.
        old_log_probs: float [N, T]
            Those of the policy that sampled.
        advantages: float [N, T]
            The advantage of each token, or of each row.
        mask: bool [N, T]
            True where the token counts.
        ref_log_probs: float [N, T], optional
            Those of the reference policy, where `beta` > 0.

    Outputs. A single number each; grad_log_probs `[N, T]`.
        loss: float
            What is minimised.
        clip_fraction: float, optional
            The share of the tokens whose gradient the clipping takes away.
        approx_kl: float, optional
            The mean divergence of the old policy from the new one.
        kl: float, optional
            The divergence from the reference, aggregated as the loss and not scaled.
        grad_log_probs: float [N, T], optional
            The gradient of the loss.

    Options.
        objective:
            `ppo-clip` (the larger of -A·ratio and -A·clipped ratio), `reinforce` (-A·log_probs) or
            `cispo` (-clipped ratio·A·log_probs, no gradient through the ratio).
        ratio:
            `token` (each token's own), `sequence` (exp of the row's mean log-ratio, differentiated
            through the mean; advantages constant along a row) or `sequence-token` (the same value,
            the gradient through each token's own log-probability).
        clip_low:
            The lower bound of the ratio is 1 - clip_low; 0 to 1.
        clip_high:
            The upper bound of the ratio is 1 + clip_high; a number ≥ 0.
        clip_bounds:
            `relative` or, with `cispo`, `absolute` (the upper bound is clip_high itself, and there
            is no lower one).
        dual_clip:
            `None`, or c > 1: with A < 0 a token's loss is at most -c·A (`ppo-clip`).
        beta:
            The weight of the divergence from the reference, ≥ 0; with 0 there is no reference.
        kl_estimator:
            `k3`, `k1`, `k2` or `abs`: the estimator of that divergence, with the gradient of its
            value.
        kl_log_ratio_clamp:
            `None`, or c > 0: the log-ratio to the reference is clamped to ±c.
        kl_clamp:
            `None`, or `[lo, hi]`: a token's divergence from the reference is clamped to it.
        advantage_shape:
            `token` (advantages `[N, T]`) or `row` (`[N]`).
        approx_kl:
            `k1`, `k2` or `k3`: what the metric `approx_kl` is the mean of.
        aggregate:
            `token-mean`, `token-sum`, `seq-mean-token-mean`, `seq-mean-token-sum` or
            `seq-mean-token-sum-norm` (the sum over tokens, divided by norm_length).
        norm_length:
            An integer > 0: the constant of `seq-mean-token-sum-norm`.
        log_ratio_clamp:
            `None`, or c > 0: the exponent of a ratio is clamped to ±c, where the derivative is 0
            beyond.
        extreme_ratios:
            `avoid` (log-ratios within ±80, at f16 within ±10) or `finite` (up to ±120, where loss
            and gradient must be finite wherever the exact ones are); beyond that as far as a clamp
            needs to act.
        empty_mask:
            `zero`, `nan`, `refuse` or `avoid`: what a batch without a token gives.
        empty_rows:
            `skip` or `count`: whether a row without a token counts in the number of rows.
        holes:
            `True` or `False`: whether a mask may have gaps inside a row.
        masked_values:
            `finite` or `any`: what may stand under the mask.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "policy-loss"
    inputs = ("log_probs", "old_log_probs", "advantages", "mask", "ref_log_probs")

    def __init__(
        self,
        *,
        objective: Literal["ppo-clip", "reinforce", "cispo"] = "ppo-clip",
        ratio: Literal["token", "sequence", "sequence-token"] = "token",
        clip_low: float = 0.2,
        clip_high: float = 0.2,
        clip_bounds: Literal["relative", "absolute"] = "relative",
        dual_clip: float | None = None,
        beta: float = 0.0,
        kl_estimator: Literal["k3", "k1", "k2", "abs"] = "k3",
        kl_log_ratio_clamp: float | None = None,
        kl_clamp: Sequence[float] | None = None,
        advantage_shape: Literal["token", "row"] = "token",
        approx_kl: Literal["k1", "k2", "k3"] = "k1",
        aggregate: Literal[
            "token-mean",
            "token-sum",
            "seq-mean-token-mean",
            "seq-mean-token-sum",
            "seq-mean-token-sum-norm",
        ] = "token-mean",
        norm_length: int | None = None,
        log_ratio_clamp: float | None = None,
        extreme_ratios: Literal["avoid", "finite"] = "avoid",
        empty_mask: Literal["zero", "nan", "refuse", "avoid"] = "zero",
        empty_rows: Literal["skip", "count"] = "skip",
        holes: bool = False,
        masked_values: Literal["finite", "any"] = "finite",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class ValueLoss(Contract):
    """The squared error of the critic, clipped around its old values.

    PPO trains the critic on the returns. With a clip the error that counts is the larger one of
    the value and of the value held within c of what it was, so a critic that runs away from its
    old values gains nothing by it.

    Inputs. `N` rows of `T` tokens: all `[N, T]`.
        values: float [N, T]
            What the critic gives now; the leaf.
        old_values: float [N, T]
            What it gave when the batch was made.
        returns: float [N, T]
            What it should give.
        mask: bool [N, T]
            True where the token counts.

    Outputs. loss and clip_fraction are numbers; grad_values `[N, T]`.
        loss: float
            The loss.
        clip_fraction: float, optional
            The share of tokens whose clipped error is the larger.
        grad_values: float [N, T], optional
            The gradient of the loss.

    Options.
        clip:
            Null, or c > 0: how far from its old value a value may move before the clipped error
            counts where it is the larger.
        factor:
            A number > 0 that multiplies the loss.
        aggregate:
            `token-mean`, `token-sum`, `seq-mean-token-mean`, `seq-mean-token-sum` or
            `seq-mean-token-sum-norm` (the last but one, divided by `norm_length`).
        norm_length:
            The constant of `seq-mean-token-sum-norm`, never derived from the width of the batch.
        empty_mask:
            `zero`, `nan`, `refuse` or `avoid`: what a batch without a token gives.
        empty_rows:
            `skip` or `count`: whether a row without a token counts in the number of rows.
        holes:
            `True` or `False`: whether a mask may have gaps inside a row.
        masked_values:
            `finite` or `any`: what may stand under the mask.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "value-loss"
    inputs = ("values", "old_values", "returns", "mask")

    def __init__(
        self,
        *,
        clip: float | None = None,
        factor: float = 0.5,
        aggregate: Literal[
            "token-mean",
            "token-sum",
            "seq-mean-token-mean",
            "seq-mean-token-sum",
            "seq-mean-token-sum-norm",
        ] = "token-mean",
        norm_length: int | None = None,
        empty_mask: Literal["zero", "nan", "refuse", "avoid"] = "zero",
        empty_rows: Literal["skip", "count"] = "skip",
        holes: bool = False,
        masked_values: Literal["finite", "any"] = "finite",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class PreferenceLoss(Contract):
    """The loss of a preference pair: how far the policy prefers the chosen completion.

    DPO and its relatives look at one number of each pair, the margin
    `Δ = (policy_chosen - policy_rejected) - (ref_chosen - ref_rejected)`. A sign, a factor β or a
    side that is exchanged leaves a loss that starts at ln 2 and moves, in the wrong direction.

    Inputs. `P` pairs: all `[P]`.
        policy_chosen: float [P]
            The log-probability of each chosen completion under the policy.
        policy_rejected: float [P]
            That of each rejected completion.
        ref_chosen: float [P]
            The log-probability of each chosen completion under the reference.
        ref_rejected: float [P]
            That of each rejected completion.

    Outputs. losses `[P]` with `reduction: none`, loss `[]` with `reduction: mean`; the rest `[P]`.
        losses: float [P], optional
            The loss of each pair; required by `reduction: none`.
        loss: float, optional
            The mean loss; required by `reduction: mean`.
        chosen_rewards: float [P], optional
            The implicit reward of each chosen completion, β·(policy - reference).
        rejected_rewards: float [P], optional
            That of each rejected completion.
        grad_policy_chosen: float [P], optional
            The gradient of the loss, or of the summed losses.
        grad_policy_rejected: float [P], optional
            The same by the other leaf.

    Options.
        kind:
            `sigmoid` (-log σ(βΔ - γ)), `hinge` (max(0, 1 - βΔ)), `ipo` ((Δ - 1/(2β))²) or `robust`
            ((-(1 - ε)·log σ(βΔ) + ε·log σ(-βΔ)) / (1 - 2ε)).
        beta:
            β > 0, the strength of the pull to the reference.
        label_smoothing:
            ε from 0 to below 0.5, the share of exchanged pairs; `sigmoid` and `robust` only.
        margin:
            γ ≥ 0, what βΔ has to exceed; `sigmoid` only.
        reference_free:
            `True` or `False`: whether the loss ignores the reference, which is passed all the same.
        reduction:
            `none` (`losses`, one for each pair) or `mean` (`loss`, one number).
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "preference-loss"
    inputs = ("policy_chosen", "policy_rejected", "ref_chosen", "ref_rejected")

    def __init__(
        self,
        *,
        kind: Literal["sigmoid", "hinge", "ipo", "robust"] = "sigmoid",
        beta: float = 0.1,
        label_smoothing: float = 0.0,
        margin: float = 0.0,
        reference_free: bool = False,
        reduction: Literal["none", "mean"] = "none",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class AccumulatedLoss(Contract):
    """The loss of one step whose batch comes in several micro-batches, and the gradient it applies.

    A batch that does not fit into memory is cut into micro-batches, over time (gradient
    accumulation) or over devices (data parallelism). The step must not depend on where it was
    cut: the denominators are those of the whole batch. A mean of means weights the tokens of short
    micro-batches more, and is the most repeated bug of this field.

    Inputs. `[n, T]` in a micro-batch of `n` rows of `T` tokens, both of its own.
        micro_batches: list of (token_losses: float, 2 dimensions; mask: bool, 2 dimensions)
            The micro-batches of one step, in order.

    Outputs. A single number; `[n, T]` for each micro-batch.
        loss: float
            The loss of the whole batch.
        grad_micro_batches: list of (token_losses: float, 2 dimensions)
            What the step applies; no item where there is no gradient.

    Options.
        aggregate:
            `token-mean`, `token-sum`, `seq-mean-token-mean`, `seq-mean-token-sum` or
            `seq-mean-token-sum-norm`: how the losses of tokens are added up.
        norm_length:
            An integer > 0 by which `seq-mean-token-sum-norm` divides, and which it requires.
        empty_mask:
            `zero`, `nan`, `refuse` or `avoid`: what a batch without a token gives.
        empty_rows:
            `skip` or `count`: whether a row without a token counts in the number of rows.
        holes:
            `True` or `False`: whether a mask may have gaps inside a row.
        masked_values:
            `finite` or `any`: what may stand under the mask.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "accumulated-loss"
    inputs = ("micro_batches",)

    def __init__(
        self,
        *,
        aggregate: Literal[
            "token-mean",
            "token-sum",
            "seq-mean-token-mean",
            "seq-mean-token-sum",
            "seq-mean-token-sum-norm",
        ] = "token-mean",
        norm_length: int | None = None,
        empty_mask: Literal["zero", "nan", "refuse", "avoid"] = "zero",
        empty_rows: Literal["skip", "count"] = "skip",
        holes: bool = False,
        masked_values: Literal["finite", "any"] = "finite",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class PolicyUpdate(Contract):
    """Does it learn: a few steps of policy gradient on a softmax policy over arms.

    The smallest training run there is: each arm has a fixed reward, the policy samples arms and
    follows them. Every part of a trainer is in it (sampling, advantage, loss, optimizer, the pull
    to a reference), and the parts must work together: the better arms must become more likely.
    What single runs do is chance, so most invariants ask many seeds and count.

    Inputs. `A` arms: logits and rewards `[A]`; the others are single numbers.
        logits: float, 1 dimensions
            The policy to begin with, and the reference.
        rewards: float, 1 dimensions
            The reward of each arm.
        steps: int
            How many steps to take, 1 or more.
        learning_rate: float
            The learning rate of the optimizer.
        seed: int
            The seed of the sampled arms, 0 to 2^31 - 1.

    Outputs. `[A]`.
        logits: float, 1 dimensions
            The policy after the steps.
        ref_logits: float, 1 dimensions, optional
            The reference after the steps.

    Options.
        beta:
            A number ≥ 0: the weight of the KL to the starting policy.
        tolerance:
            A number from 0 to 0.5: the share of runs in which a right component may fail by chance
            to show what an invariant asks for.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "policy-update"
    inputs = ("logits", "rewards", "steps", "learning_rate", "seed")

    def __init__(
        self,
        *,
        beta: float = 0.0,
        tolerance: float = 0.1,
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


BY_ID: dict[str, type[Contract]] = {
    "reward-function": RewardFunction,
    "length-penalty": LengthPenalty,
    "completion-decoder": CompletionDecoder,
    "answer-extractor": AnswerExtractor,
    "token-decoder": TokenDecoder,
    "completion-mask": CompletionMask,
    "sampling-filter": SamplingFilter,
    "group-advantage": GroupAdvantage,
    "outcome-advantage": OutcomeAdvantage,
    "gae": Gae,
    "rollout-gae": RolloutGae,
    "returns": Returns,
    "whiten": Whiten,
    "token-log-probs": TokenLogProbs,
    "token-entropy": TokenEntropy,
    "kl-estimate": KlEstimate,
    "policy-loss": PolicyLoss,
    "value-loss": ValueLoss,
    "preference-loss": PreferenceLoss,
    "accumulated-loss": AccumulatedLoss,
    "policy-update": PolicyUpdate,
}
