"""The contracts, each a class that takes its options. Written by `generate.py`."""

from __future__ import annotations

from typing import Literal, Mapping, Sequence, overload

from ._contract import Contract
from ._errors import UsageError, brief
from ._settings import unknown

__all__ = [
    "GroupSampling",
    "TurnMask",
    "BatchCollation",
    "SequencePacking",
    "BatchPartition",
    "RewardFunction",
    "LengthPenalty",
    "RewardCombination",
    "CompletionDecoder",
    "AnswerExtractor",
    "TokenDecoder",
    "CompletionMask",
    "SamplingFilter",
    "GroupFilter",
    "GroupAdvantage",
    "OutcomeAdvantage",
    "TokenRewards",
    "Gae",
    "RolloutGae",
    "Returns",
    "Whiten",
    "ModelForward",
    "TokenLogProbs",
    "TokenEntropy",
    "KlEstimate",
    "ImportanceWeights",
    "PolicyLoss",
    "EntropyBonus",
    "ValueLoss",
    "PreferenceLoss",
    "PairObjective",
    "AccumulatedLoss",
    "PolicyUpdate",
    "SftStep",
    "PreferenceStep",
    "KtoStep",
    "RewardModelStep",
    "CriticStep",
    "GrpoStep",
    "MetricReduction",
    "BY_ID",
    "contract",
]


class GroupSampling(Contract):
    """In which order prompts and their copies come to be sampled.

    A method that compares the completions of a prompt with each other needs G of each, side by
    side or a fixed distance apart, and in one batch. What makes the order is a sampler of a dozen
    lines that nobody looks at again: a copy too few, a group cut in two or a shuffle that is thrown
    away raises nothing, and the advantages are still numbers.

    Inputs. `B` prompts: `[B]`; seed a single number.
        prompts: int [B]
            The id of each prompt of the data, no two of them the same.
        seed: int
            What the permutation depends on, where there is one.

    Outputs. `M` rows, as many as the prompts that are not dropped times their copies: `[M]`.
        rows: float, 1 dimensions
            The id of the prompt of each row to come.

    Options.
        group_size:
            An integer ≥ 1: how many copies of a prompt are sampled.
        prompts_per_batch:
            `None` (all), or an integer ≥ 1: how many prompts a generation batch has, each counted
            once.
        repeats:
            An integer ≥ 1: how many times in a row a generation batch comes.
        layout:
            `interleave` (`a a b b`) or `tile` (`a b a b`): how the copies of a batch stand.
        shuffle:
            `True` or `False`: whether prompts are permuted before they are cut into batches.
        drop_last:
            `True` or `False`: whether prompts that do not fill the last batch are left out.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "group-sampling"
    inputs = ("prompts", "seed")

    def __init__(
        self,
        *,
        group_size: int = 2,
        prompts_per_batch: int | None = None,
        repeats: int = 1,
        layout: Literal["interleave", "tile"] = "interleave",
        shuffle: bool = False,
        drop_last: bool = True,
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class TurnMask(Contract):
    """Which tokens of a conversation are trained.

    A conversation is rendered turn by turn, with marks around each, and the tokens of some turns
    are trained: those of the assistant, or of the last answer. Masks that are found by searching
    the rendered text for marks go wrong where a turn is missing, where two follow each other, where
    an answer is cut off, and where somebody writes a mark into a message.

    The outputs are lists of ids and flags, 0 or 1, as floats, integers or booleans. Any of them
    will do.

    Inputs. `[n]` tokens in a turn, a number of its own.
        turns: list of (role: int; tokens: int, 1 dimensions)
            The turns of the conversation, in order; one at least.

    Outputs. `[T]` tokens of the rendered conversation; with `shift: next` the mask and the labels
    have one less.
        tokens: float, 1 dimensions, optional
            The ids of the rendered conversation.
        mask: float, 1 dimensions, optional
            1 where the token is trained, else 0.
        labels: float, 1 dimensions, optional
            The ids of the trained tokens, `ignore` elsewhere.

    Options.
        bos:
            The ids before the first turn, if any.
        start:
            The ids before each turn's role, if any.
        end:
            The ids behind each turn's content, if any.
        role_ids:
            The id of each role: system, user, assistant, tool; or none, where the text does not
            name the role.
        train:
            `assistant`, `last-assistant`, `last` or `all`: the turns of the assistant, the last one
            of them, the last turn whosever it is, or every turn but the system's.
        train_header:
            `True` or `False`: whether the ids before the content of a trained turn are trained,
            `start` and the role's.
        train_end:
            `True` or `False`: whether the `end` of a trained turn is trained.
        max_length:
            Null, or an integer ≥ 1: so many tokens of the text stay, its first ones.
        ignore:
            What stands in `labels` where the token is not trained.
        shift:
            `none` or `next`: whether mask and labels speak of the token in their place, or of the
            next one; then they lack their first entry.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "turn-mask"
    inputs = ("turns",)

    def __init__(
        self,
        *,
        bos: Sequence[int] = (1,),
        start: Sequence[int] = (10,),
        end: Sequence[int] = (11,),
        role_ids: Sequence[int] = (20, 21, 22, 23),
        train: Literal["assistant", "last-assistant", "last", "all"] = "assistant",
        train_header: bool = False,
        train_end: bool = True,
        max_length: int | None = None,
        ignore: int = -100,
        shift: Literal["none", "next"] = "none",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class BatchCollation(Contract):
    """How prompts and completions become the tensors of a batch: ids, masks, labels and positions.

    Every row is a prompt and its completion; rows are of different length, and what is left over is
    padding. Whoever takes a pad for a token, a token for a pad or the prompt for the completion
    trains on the wrong tokens, and no loss curve says so. Cut rows are the worst of it: the
    boundary between prompt and completion moves with the cut.

    Outputs are numbers, flags 0 or 1, as floats, integers or booleans. Any of them will do.

    Inputs. `N` rows, prompts of `P` columns and completions of `C`: `[N, P]`, `[N]`, `[N, C]`,
    `[N]`. What lies beyond a length is the pad.
        prompts: int [N, P]
            The token ids of each prompt, filled up with the pad.
        prompt_lengths: int [N]
            How many of them are tokens, 1 at least.
        completions: int [N, C]
            The token ids of each completion, filled up with the pad.
        completion_lengths: int [N]
            How many of them are tokens; 1 at least with `truncate: keep-end`.

    Outputs. `[N, L]`, all of one width `L`: that of the longest row, or the next multiple.
        input_ids: float [N, L], optional
            The token ids, and the pad beside them.
        attention_mask: float [N, L], optional
            1 where a token stands, 0 where a pad.
        completion_mask: float [N, L], optional
            1 where a token of the completion stands, else 0.
        labels: float [N, L], optional
            The ids of the tokens that are trained, `ignore` elsewhere.
        position_ids: float [N, L], optional
            The number of each token in its row, from 0 on.

    Options.
        layout:
            `right`, `left` or `split`: padding behind each row, before it, or before each prompt
            (up to the longest one) and behind each completion.
        pad:
            The id that fills a row up. A token may have it too.
        ignore:
            What stands in `labels` where no token is trained.
        train_on:
            `completion` or `all`: which tokens have a label.
        max_length:
            Null, or an integer ≥ 1: so many tokens of a row stay, of prompt and completion
            together. Null with `layout: split`.
        truncate:
            `keep-start`, `keep-end` or `refuse`: which end of a longer row stays, or whether it is
            an error.
        multiple_of:
            Null, or an integer ≥ 1: the width is rounded up to a multiple of it. Null with `layout:
            split`.
        shift:
            `none` or `next`: whether labels stand in their token's column, or in the one before it;
            then the last column is `ignore`.
        pad_positions:
            `any` or `zero`: what stands in `position_ids` under padding.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "batch-collation"
    inputs = ("prompts", "prompt_lengths", "completions", "completion_lengths")

    def __init__(
        self,
        *,
        layout: Literal["right", "left", "split"] = "right",
        pad: int = 0,
        ignore: int = -100,
        train_on: Literal["completion", "all"] = "completion",
        max_length: int | None = None,
        truncate: Literal["keep-start", "keep-end", "refuse"] = "keep-start",
        multiple_of: int | None = None,
        shift: Literal["none", "next"] = "none",
        pad_positions: Literal["any", "zero"] = "any",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


class SequencePacking(Contract):
    """Documents packed into rows of one width, so that no step is spent on padding.

    There are many right answers: documents and rows come in any order. What is asked is that each
    document is there once, token for token, that a model can tell where each begins, and that none
    is trained on what another one says.

    The outputs are arrays of integers or floats, all of one shape. `B` and `L` are the component's
    own.

    Inputs. `N` documents, filled up to `T` tokens: tokens and mask `[N, T]`, lengths `[N]`.
        tokens: int [N, T]
            The token ids of each document, then padding. The padding's id may stand inside too.
        lengths: int [N]
            How many tokens each document has, one at least.
        mask: bool [N, T]
            True where a token is trained.

    Outputs. `B` rows of `L` tokens: all `[B, L]`.
        packed: float [B, L]
            The token ids.
        segments: float [B, L]
            The document of each token, counted from 1 in its row; 0 at padding.
        positions: float [B, L], optional
            The position of each token in its document. At padding anything.
        labels: float [B, L], optional
            What is to be predicted of, or at, each token; `ignore` where nothing is.

    Options.
        capacity:
            How many tokens a row may have.
        width:
            `capacity` or `needed`: rows are that wide, or at most.
        pad:
            The id of padding in `packed`; may stand inside documents too.
        ignore:
            The label where nothing is predicted.
        overlong:
            `avoid`, `truncate`, `split` or `refuse`: a document longer than the capacity is never
            generated, cut off at the capacity, cut into pieces that are segments of their own, or
            an error.
        cut:
            `capacity` or `anywhere`: pieces are full but for the last one, or end wherever a row is
            full; then only tokens and positions are checked, and segments for their form. Says
            nothing without `overlong: split`.
        split_positions:
            `restart` or `any`: a piece begins at position 0, or there or where it stands in its
            document. Inside a segment positions always count up by one.
        shift:
            `none` or `next`: the label at a token is its own, or that of the next token of its
            segment, and `ignore` at the end.
        first_label:
            `keep` or `ignore`: whether the first token of a segment has a label. With `shift: next`
            it has none in any case.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "sequence-packing"
    inputs = ("tokens", "lengths", "mask")

    def __init__(
        self,
        *,
        capacity: int = 8,
        width: Literal["capacity", "needed"] = "capacity",
        pad: int = 0,
        ignore: int = -100,
        overlong: Literal["avoid", "truncate", "split", "refuse"] = "avoid",
        cut: Literal["capacity", "anywhere"] = "capacity",
        split_positions: Literal["restart", "any"] = "restart",
        shift: Literal["none", "next"] = "none",
        first_label: Literal["keep", "ignore"] = "keep",
        rows: Literal["independent", "batch"] = "batch",
        deterministic: bool = True,
    ) -> None: ...


class BatchPartition(Contract):
    """Which row goes to which worker or micro-batch, so that each has about as many tokens.

    There are many right answers, so none is expected. What is asked of a partition is what every
    reasonable algorithm keeps and no broken one does: each row in one part, no part without a row,
    and bounds on the tokens of a part and on the number of parts. Optimality is never asked.

    The first output is an array of part numbers, as integers or floats.

    Inputs. `N` rows: both `[N]`.
        lengths: int [N]
            How many tokens each row has.
        values: float [N]
            A result for each row, to be carried through the parts and back.

    Outputs. `N` rows: both `[N]`.
        parts: float [N]
            The part of each row: 0, 1, …
        restored: float [N], optional
            The values after they went through the parts in order, and back.

    Options.
        mode:
            `count` or `capacity`: exactly `parts` parts, or as many as `capacity` asks for.
        parts:
            How many parts there are, with `mode: count`. Fewer rows are refused: they raise.
        equal_size:
            `True` or `False`: whether every part holds as many rows, with `mode: count`. A number
            of rows that gives no such parts is refused.
        balance:
            `True` or `False`: whether parts of about as many tokens are claimed, with `mode:
            count`. Nothing is claimed of `equal_size` and `contiguous` together, which leave no
            choice.
        capacity:
            How many tokens a part may have, with `mode: capacity`.
        oversized:
            `avoid`, `alone` or `refuse`: a row longer than `capacity` is never generated, a part of
            its own, or an error.
        min_parts:
            There are so many parts at least, with `mode: capacity`.
        multiple_of:
            The number of parts is a multiple of it, with `mode: capacity`.
        contiguous:
            `True` or `False`: whether parts are runs of rows, in order.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "batch-partition"
    inputs = ("lengths", "values")

    def __init__(
        self,
        *,
        mode: Literal["count", "capacity"] = "count",
        parts: int = 2,
        equal_size: bool = False,
        balance: bool = True,
        capacity: int = 100,
        oversized: Literal["avoid", "alone", "refuse"] = "avoid",
        min_parts: int = 1,
        multiple_of: int = 1,
        contiguous: bool = False,
        rows: Literal["independent", "batch"] = "batch",
        deterministic: bool = True,
    ) -> None: ...


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


class RewardCombination(Contract):
    """The scores of several reward functions, made into one number per completion.

    Correctness, format, length: each function scores every completion, or some, and the trainer
    weighs and adds. Whether a function is first normalised inside its group, what becomes of a
    score that is missing, and whether the sum is whitened at the end are conventions.

    Inputs. `N` completions, `K` reward functions: rewards `[N, K]`, groups `[N]`.
        rewards: float [N, K]
            One column per reward function. NaN where it did not score (`unscored: skip`).
        groups: int [N]
            The group of each completion; completions of one prompt share a number.

    Outputs. `N` completions, `K` reward functions: combined `[N]`, function_means `[K]`.
        combined: float [N]
            One number per completion.
        reward_mean: float, optional
            The mean of the weighted raw rewards over the rows that some function scored; NaN where
            there is none.
        function_means: float [K], optional
            The mean of each function over the rows that it scored; NaN where there is none.

    Options.
        weights:
            One weight per function, in the order of the columns; `None`: all are 1. Weights of 0
            and negative ones are legal.
        weight_norm:
            `none` or `sum`: weights are taken as they are, or divided by their sum first.
        unscored:
            `avoid` or `skip`: NaN rewards are never generated, or add nothing and count in no
            statistic.
        nothing:
            `nan` or `zero`: what a row gets that no function scored.
        normalise:
            `none` or `group`: each function is taken as it is, or normalised inside its group
            before it is weighed (GDPO).
        divide:
            `True` or `False`: whether normalising divides by σ + ε, or only takes the mean off.
        ddof:
            `1` or `0`: unbiased or biased variance of a function inside its group.
        epsilon:
            A number ≥ 0 that is added to that deviation.
        singleton:
            `zero`, `reward` or `avoid`: what a function is normalised to that scored one row of a
            group.
        final:
            `none`, `add` or `root`: the sums stay as they are, or are whitened over the rows that
            some function scored, by σ + ε or √(σ² + ε).
        final_ddof:
            `1` or `0`: unbiased or biased variance of the sums.
        final_epsilon:
            A number ≥ 0 that protects that division.
        layout:
            `any` or `contiguous` (equal-sized groups in adjacent rows).
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "reward-combination"
    inputs = ("rewards", "groups")

    def __init__(
        self,
        *,
        weights: Sequence[float] | None = None,
        weight_norm: Literal["none", "sum"] = "none",
        unscored: Literal["avoid", "skip"] = "avoid",
        nothing: Literal["nan", "zero"] = "nan",
        normalise: Literal["none", "group"] = "none",
        divide: bool = True,
        ddof: int = 1,
        epsilon: float = 0.0001,
        singleton: Literal["zero", "reward", "avoid"] = "zero",
        final: Literal["none", "add", "root"] = "none",
        final_ddof: int = 1,
        final_epsilon: float = 0.0001,
        layout: Literal["any", "contiguous"] = "any",
        rows: Literal["independent", "batch"] = "batch",
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


class GroupFilter(Contract):
    """Which groups stay in the batch.

    A prompt that every completion solves, or none, has nothing to say to a group baseline. DAPO and
    its heirs drop such groups before the step, and everything that belongs to their rows with them:
    what is kept must be whole groups, and ids and rewards must still be those of the rows kept.

    Inputs. `N` rows, a completion each: all `[N]`.
        rewards: float [N]
            The reward of each row, which is only carried along.
        metric: float [N]
            What decides: the reward itself, or what it was before it was shaped.
        groups: int [N]
            The group of each row; completions of one prompt share a number.
        ids: int [N]
            The id of each row, no two alike.

    Outputs. `N` rows of which `M` are kept: keep `[N]`, the others `[M]`.
        keep: float [N]
            1 where the row stays, else 0.
        kept_ids: float [M], optional
            The ids of the rows that stay, in their order.
        kept_rewards: float [M], optional
            The rewards of the same rows.

    Options.
        criterion:
            `spread` (a group stays when the largest of its metric exceeds the least by more than
            `tolerance`) or `range` (when their mean lies strictly inside `range`).
        tolerance:
            A number from 0 to 1 that a spread must exceed. What is generated is 0, or 0.001 and 100
            times as much at least, so that a deviation decides as a spread does.
        range:
            `[lo, hi]`, 0.01 apart at least and within ±100: where a mean must lie.
        singleton:
            `drop`, `keep` or `avoid`: what becomes of a group of one row (`criterion: spread`).
        limit:
            `None`, or an integer ≥ 0: no more groups stay than this, in the order in which they
            first appear.
        layout:
            `any` or `contiguous` (equal-sized groups in adjacent rows).
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "group-filter"
    inputs = ("rewards", "metric", "groups", "ids")

    def __init__(
        self,
        *,
        criterion: Literal["spread", "range"] = "spread",
        tolerance: float = 0.0,
        range: Sequence[float] = (0.0, 1.0),
        singleton: Literal["drop", "keep", "avoid"] = "drop",
        limit: int | None = None,
        layout: Literal["any", "contiguous"] = "any",
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


class TokenRewards(Contract):
    """The reward of each token: one score for the completion, and what the distance to the reference

    costs along the way.

    PPO and REINFORCE++ see the score once, at the end of the row, and a penalty at every token. A
    penalty that is lost, paid by tokens of a tool or taken from another row still gives numbers of
    the right size, and so does a score that stands where no token was sampled.

    Inputs. `N` rows of `T` tokens: scores and finished `[N]`, the others `[N, T]`.
        scores: float [N]
            The score of each completion.
        log_probs: float [N, T]
            The log-probability of each token under the policy that sampled it.
        ref_log_probs: float [N, T]
            The same under the reference.
        mask: bool [N, T]
            True where the token was sampled, and pays for its distance.
        finished: bool [N], optional
            Whether each completion came to its end; only where `unfinished` is not `none`.

    Outputs. `N` rows of `T` tokens: rewards `[N, T]`, kl a number.
        rewards: float [N, T]
            The reward of each token.
        kl: float, optional
            The divergence that is reported: without β, and without the score.

    Options.
        beta:
            The weight of the penalty, ≥ 0.
        kl_estimator:
            `k1` (d), `k2` (d²/2), `k3` (e^{-d} - 1 + d) or `abs` (|d|), where d is `log_probs` -
            `ref_log_probs`.
        log_ratio_clamp:
            `None`, or c > 0: d is clamped to ±c first.
        kl_clamp:
            `None`, or `[lo, hi]` with lo ≤ 0 ≤ hi: a token's divergence is clamped to it, before β.
        place:
            `last` (the row's last unmasked column) or `after-last` (the next one, where the row has
            one more; that one is no part of `masked_output`): where the score stands.
        unfinished:
            `none`, `subtract`, `replace` or `scale`: the score r of a row with `finished` false is
            kept, r - p, -p or r·p.
        penalty:
            p, from -1000 to 1000.
        score_clip:
            `None`, or `[lo, hi]`: the score alone is clipped, after `unfinished`.
        report:
            `token-mean` (over tokens), `row-mean` (over rows of their means) or `row-sum` (over
            rows of their sums): what `kl` is the mean of.
        empty_mask:
            `zero`, `nan`, `refuse` or `avoid`: what `kl` is in a batch without a token.
        empty_rows:
            `skip` or `count`: whether a row without a token counts in the number of rows.
        holes:
            `True` or `False`: whether a mask may have gaps inside a row.
        masked_values:
            `finite` or `any`: what may stand under the mask.
        masked_output:
            `zero` or `any`: what stands at masked positions of `rewards`.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "token-rewards"
    inputs = ("scores", "log_probs", "ref_log_probs", "mask", "finished")

    def __init__(
        self,
        *,
        beta: float = 0.05,
        kl_estimator: Literal["k3", "k1", "k2", "abs"] = "k1",
        log_ratio_clamp: float | None = None,
        kl_clamp: Sequence[float] | None = None,
        place: Literal["last", "after-last"] = "last",
        unfinished: Literal["none", "subtract", "replace", "scale"] = "none",
        penalty: float = 1.0,
        score_clip: Sequence[float] | None = None,
        report: Literal["token-mean", "row-mean", "row-sum"] = "token-mean",
        empty_mask: Literal["zero", "nan", "refuse", "avoid"] = "zero",
        empty_rows: Literal["skip", "count"] = "skip",
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


class ModelForward(Contract):
    """The forward pass of a model: logits that depend on the tokens before them, and on nothing else.

    Ratios and divergences compare log-probabilities of two passes. One of them was padded, packed,
    ordered or cached in another way. So the logits of a token must not depend on its padding, on
    other rows, on tokens behind it or on a cache.

    Any model may be checked, so no oracle knows its logits: those of one call are compared with
    those of another. They may be apart by a part of the largest logit: 1e-9 at f64, 1e-4 at f32,
    0.01 at f16, 0.05 at bf16. No input says in which format the model computes: the place does.
    A model in training mode drops some of its state at random: `eval()` comes first.

    Inputs. `N` rows of `T` columns: `[N, T]`.
        input_ids: int [N, T]
            Token ids below `vocabulary`. Under padding any of them.
        attention_mask: bool [N, T]
            True at tokens, false at padding.
        position_ids: int [N, T], optional
            With `positions: given`: the number of each token in its sequence, from 0 on; 0 under
            padding.

    Outputs. `[N, T, V]`, where `V` is `vocabulary`. The first `V` logits of a larger model will do.
        logits: float [N, T, V]
            The logits behind each token. Under padding anything.
        cached_logits: float [N, T, V], optional
            The same, computed token by token with a cache.

    Options.
        vocabulary:
            An integer ≥ 2: ids are below it, and so many logits are looked at.
        columns:
            An integer ≥ 1: rows have so many columns at most, padding included.
        padding:
            `any`, `right`, `left` or `none`: the sides on which rows may have padding.
        positions:
            `counted` or `given`: whether the model counts positions itself, or is given
            `position_ids`.
        packed:
            `True` or `False`: whether a row may hold several sequences, which must not see each
            other. Their positions begin at 0: this needs `positions: given`.
        empty_rows:
            `True` or `False`: whether a row may be all padding.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "model-forward"
    inputs = ("input_ids", "attention_mask", "position_ids")

    def __init__(
        self,
        *,
        vocabulary: int = 8,
        columns: int = 12,
        padding: Literal["any", "right", "left", "none"] = "any",
        positions: Literal["counted", "given"] = "counted",
        packed: bool = False,
        empty_rows: bool = False,
        rows: Literal["independent", "batch"] = "independent",
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


class ImportanceWeights(Contract):
    """Weights that correct for a sampler that is not quite the policy that is trained.

    Completions come from an inference engine, with other kernels, another precision or older
    weights than the trainer's policy. Each token is weighted by policy over sampler, held within
    bounds, and what is too far off is dropped. A weight that is 1 throughout looks like an engine
    without a fault, and a wrong one trains on, so nobody sees either.

    Inputs. `N` rows of `T` tokens: all `[N, T]`, advantages `[N]`.
        log_probs: float [N, T]
            The log-probability of each token under the policy as it is before the update.
        sampler_log_probs: float [N, T]
            The same as the sampler reported it.
        mask: bool [N, T]
            True where the token counts.
        advantages: float [N], optional
            The advantage of each row; there where `drift` is.

    Outputs. weights, keep and grad_log_probs `[N, T]`; clip_fraction and mismatch_kl are numbers.
        weights: float [N, T]
            The weight of each token.
        keep: float [N, T], optional
            Whether a token counts and is not dropped.
        clip_fraction: float, optional
            The share of tokens that were clamped or dropped.
        mismatch_kl: float, optional
            The mean of sampler less policy over the tokens.
        grad_log_probs: float [N, T], optional
            The gradient of the summed weights, which is 0.

    Options.
        level:
            `token`, `sequence` or `geometric`: whether the exponent of a weight is the token's
            log-ratio, the sum of those of its row, or their mean.
        clamp_low:
            `None` or a number: weights are at least this.
        clamp_high:
            `None` or a number: weights are at most this.
        select:
            `none`, `token`, `sequence` or `geometric`: which ratio must be from `select_low` to
            `select_high`, so that the token, or for the last two the row, is not dropped.
        select_low:
            `None` or the least ratio that is kept.
        select_high:
            `None` or the largest ratio that is kept.
        veto:
            `None`, or v in (0, 1): a row is dropped for one token whose own ratio is below v.
        drift:
            `None`, or δ: a row of negative advantage is dropped if the mean of sampler less policy
            over its tokens is more than δ.
        rejected:
            `zero` or `unchanged`: whether what is dropped weighs 0, or as much as if it were kept.
        normalize:
            `none`, `tokens` or `sequences`: the weights are divided last by their mean over the
            tokens, or over the rows with a token of their row means, where that is positive.
        log_ratio_clamp:
            `None`, or c > 0: the exponent is clamped to ±c, that of the weight and that of
            `select`.
        extreme_ratios:
            `avoid` (generated log-ratios stay within ±80, at f16 within ±10) or `finite` (up to
            ±120 wherever the exact weight is finite in the dtype); beyond that as far as a clamp
            needs to act, and within ±3 where the weights are divided by a mean.
        empty_mask:
            `zero`, `nan`, `refuse` or `avoid`: what a batch without a token gives for
            `clip_fraction` and `mismatch_kl`.
        holes:
            `True` or `False`: whether a mask may have gaps inside a row.
        masked_values:
            `finite` or `any`: what may stand under the mask.
        masked_output:
            `zero` or `any`: what stands at masked positions of the outputs.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "importance-weights"
    inputs = ("log_probs", "sampler_log_probs", "mask", "advantages")

    def __init__(
        self,
        *,
        level: Literal["token", "sequence", "geometric"] = "token",
        clamp_low: float | None = None,
        clamp_high: float | None = 2.0,
        select: Literal["none", "token", "sequence", "geometric"] = "none",
        select_low: float | None = None,
        select_high: float | None = None,
        veto: float | None = None,
        drift: float | None = None,
        rejected: Literal["zero", "unchanged"] = "zero",
        normalize: Literal["none", "tokens", "sequences"] = "none",
        log_ratio_clamp: float | None = None,
        extreme_ratios: Literal["avoid", "finite"] = "avoid",
        empty_mask: Literal["zero", "nan", "refuse", "avoid"] = "zero",
        holes: bool = False,
        masked_values: Literal["finite", "any"] = "finite",
        masked_output: Literal["zero", "any"] = "zero",
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


class EntropyBonus(Contract):
    """The mean entropy of the tokens that count, and the bonus that it is in the loss.

    A policy that is sure of everything explores nothing. A small multiple of its entropy, taken
    from the loss, keeps it undecided: small enough that a wrong normaliser, a temperature left out
    or pads that are counted show in no curve but the entropy's own.

    Inputs. `N` rows of `T` tokens over a vocabulary of `V`: logits `[N, T, V]`, mask `[N, T]`.
        logits: float [N, T, V]
            What the model gave. `-inf` where a token cannot come, unless `neg_inf: avoid`.
        mask: bool [N, T]
            True where the token counts.

    Outputs. A single number each; grad_logits `[N, T, V]`.
        loss: float, optional
            The bonus, as it is added to what is minimised.
        entropy: float, optional
            The aggregated entropy.
        grad_logits: float [N, T, V], optional
            The gradient of the loss; where there is none, of the entropy.

    Options.
        coefficient:
            A number > 0: the loss is the entropy times this, negative.
        temperature:
            A number > 0 that divides the logits.
        aggregate:
            `token-mean`, `token-sum`, `seq-mean-token-mean`, `seq-mean-token-sum` or
            `seq-mean-token-sum-norm` (the sum over tokens, divided by norm_length).
        norm_length:
            An integer > 0: the constant of `seq-mean-token-sum-norm`.
        top_share:
            `None` (all), or a share > 0 and at most 1: only tokens count whose entropy is at least
            the (1 - top_share)-quantile, interpolated linearly, of those under the mask; the choice
            has no gradient.
        neg_inf:
            `avoid` (-inf logits are never generated) or `zero` (they contribute 0).
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

    id = "entropy-bonus"
    inputs = ("logits", "mask")

    def __init__(
        self,
        *,
        coefficient: float = 0.01,
        temperature: float = 1.0,
        aggregate: Literal[
            "token-mean",
            "token-sum",
            "seq-mean-token-mean",
            "seq-mean-token-sum",
            "seq-mean-token-sum-norm",
        ] = "token-mean",
        norm_length: int | None = None,
        top_share: float | None = None,
        neg_inf: Literal["avoid", "zero"] = "avoid",
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


class PairObjective(Contract):
    """Objectives of preference pairs beyond the margin of DPO: averages, odds, sides apart, ranks.

    Some of these compare log-probabilities averaged over a completion's tokens (ORPO, SimPO, the
    `-norm` kinds), some treat the chosen and the rejected side apart (NCA, BCO, SPPO, APO), one
    turns the divergence round (EXO), two match ranks instead of pairs (AOT). Who takes a sum for an
    average, one side for both or a target for its double gets a loss that still falls in training.

    Inputs. `P` pairs: all `[P]`.
        policy_chosen: float [P]
            The log-probability of each chosen completion under the policy.
        policy_rejected: float [P]
            That of each rejected completion.
        ref_chosen: float [P]
            The log-probability of each chosen completion under the reference.
        ref_rejected: float [P]
            That of each rejected completion.
        chosen_lengths: int [P]
            How many tokens each chosen completion has, at least 1.
        rejected_lengths: int [P]
            How many each rejected one has.

    Outputs. losses `[P]` with `reduction: none`, loss `[]` with `reduction: mean`; the rest `[P]`.
        losses: float [P], optional
            The loss of each pair; required by `reduction: none`.
        loss: float, optional
            The mean loss; required by `reduction: mean`.
        chosen_rewards: float [P], optional
            The implicit reward of each chosen completion, β·(policy - reference); β times the
            average under the policy for `orpo` and `simpo`.
        rejected_rewards: float [P], optional
            That of each rejected completion.
        grad_policy_chosen: float [P], optional
            The gradient of the loss, or of the summed losses.
        grad_policy_rejected: float [P], optional
            The same by the other leaf.

    Options.
        kind:
            The objective, to be declared: `orpo`, `simpo`, `sigmoid-norm`, `ipo-norm` (averages
            over tokens), `nca`, `bco-pair`, `sppo-hard`, `apo-zero`, `apo-down` (the sides apart),
            `exo` (the divergence turned round), `aot` or `aot-unpaired` (ranks).
        beta:
            β > 0, the strength of the pull to the reference, or the scale of a reward.
        gamma:
            γ ≥ 0, what β times the difference of averages has to exceed; `simpo` only.
        label_smoothing:
            ε from 0 to below 1, the share of exchanged pairs; `simpo`, `sigmoid-norm`, `aot` and
            `aot-unpaired` only, and `exo`, which needs more than 0.
        sft:
            `True` or `False`: whether the chosen side's negative average log-probability is added;
            `orpo` only.
        reduction:
            `none` (`losses`, one for each pair) or `mean` (`loss`, one number; the only one for
            `aot` and `aot-unpaired`).
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "pair-objective"
    inputs = ("policy_chosen", "policy_rejected", "ref_chosen", "ref_rejected", "chosen_lengths", "rejected_lengths")

    def __init__(
        self,
        *,
        kind: Literal[
            "orpo",
            "simpo",
            "sigmoid-norm",
            "ipo-norm",
            "nca",
            "bco-pair",
            "sppo-hard",
            "apo-zero",
            "apo-down",
            "exo",
            "aot",
            "aot-unpaired",
        ] = "simpo",
        beta: float = 0.1,
        gamma: float = 0.5,
        label_smoothing: float = 0.0,
        sft: bool = True,
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


class SftStep(Contract):
    """A whole trainer of supervised fine-tuning: the gradient by the logits at each update.

    The loss is one line, and the bugs are around it: labels that are shifted twice, prompts that
    are trained, an end that is taken for a pad, a mean of the means of unequal micro-batches. The
    loss falls all the same. So the trainer is handed a model whose logits are a table, one row for
    each prefix, and what it does to that table is the answer.

    Every sequence begins with the same token, which is not among `tokens`: it is the prefix of the
    first one. A prefix that several sequences share has one row: the logits where it comes first
    hold, the others are not read, and its gradient is there too.

    Inputs. `N` sequences of `T` tokens behind the first, `U` updates, a vocabulary of `V`: tokens
    and mask `[N, T]`, logits `[U, N, T, V]`. `U` is epochs · mini_batches.
        tokens: int [N, T]
            The ids of each sequence up to `eos`, and `pad` behind it.
        mask: bool [N, T]
            Which tokens are trained. Equal sequences have equal masks.
        logits: float [U, N, T, V]
            The model's logits for each token, at each update.
        micro_batches: int, 3 dimensions, optional
            The rows of each micro-batch, `[U, M, B]`, where the trainer chose them: no component is
            given them, they are read off its answer.

    Outputs. gradient `[U, N, T, V]`; micro_batches `[U, M, B]`, -1 where a micro-batch has fewer
    rows; unknown `[U]`.
        gradient: float [U, N, T, V]
            The gradient of the loss at each update, where each prefix comes first; 0 elsewhere.
        micro_batches: float, 3 dimensions, optional
            The rows of each micro-batch, in the order in which they were trained.
        unknown: float, 1 dimensions, optional
            The largest gradient at each update on logits that score no token of a sequence.

    Options.
        eos:
            The id that ends a sequence, from 0 to 15.
        pad:
            The id that fills a sequence up, from 0 to 15; may be `eos`.
        trained:
            `completion`, `text` or `turns`: which tokens the data wants trained, those behind a
            prompt, all, or those of some turns. `mask` has them.
        loss:
            `nll` or `dft`: whether a token's loss is multiplied by its probability.
        aggregate:
            `token-mean`, `token-sum`, `seq-mean-token-mean` or `seq-mean-token-sum`.
        over:
            `update` or `micro-batch`: over which rows the mean is taken.
        epochs:
            1 to 16: how many times the sequences are passed.
        mini_batches:
            1 to 16: how many updates a pass has.
        accumulation:
            1 to 16: how many micro-batches an update has.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "sft-step"
    inputs = ("tokens", "mask", "logits", "micro_batches")

    def __init__(
        self,
        *,
        eos: int = 1,
        pad: int = 0,
        trained: Literal["completion", "text", "turns"] = "completion",
        loss: Literal["nll", "dft"] = "nll",
        aggregate: Literal[
            "token-mean",
            "token-sum",
            "seq-mean-token-mean",
            "seq-mean-token-sum",
            "seq-mean-token-sum-norm",
        ] = "token-mean",
        over: Literal["micro-batch", "update"] = "update",
        epochs: int = 1,
        mini_batches: int = 1,
        accumulation: int = 1,
        rows: Literal["independent", "batch"] = "batch",
        deterministic: bool = True,
    ) -> None: ...


class PreferenceStep(Contract):
    """A whole trainer of preference pairs: the gradient by the logits at each update.

    The loss of a pair is a component of its own. The bugs of a trainer are in what it is given: the
    rejected half of a batch without its mask, a reference that is the policy, a chosen completion
    beside the rejected one of another prompt. So the trainer is handed a model whose logits are a
    table, one row for each prefix, and what it does to that table is the answer.

    A prefix that both completions of a pair share has one row: the logits where it comes first
    hold, the others are not read, and its gradient is there too. Each micro-batch has its mean, and
    the update the mean of those.

    The negative log-likelihood of the chosen completions may be added, as ORPO and CPO do. Prompts
    are of different lengths: behind its first, that of pair p has p + 1 tokens.

    Inputs. `P` pairs of 2 completions, the chosen one first, of `T` tokens; `U` updates, a
    vocabulary of `V`: tokens `[P, 2, T]`, logits `[U, P, 2, T, V]`, ref_logits `[P, 2, T, V]`. `U`
    is epochs · mini_batches. A row is a completion: that of pair p is row 2·p, and 2·p + 1.
        tokens: int [P, S, T]
            The ids of each completion up to `eos`, and `pad` behind it.
        logits: float [U, P, S, T, V]
            The policy's logits for each token, at each update.
        ref_logits: float [P, S, T, V], optional
            The reference's logits for each token, where there is one.
        micro_batches: int, 3 dimensions, optional
            The rows of each micro-batch, `[U, M, B]`, where the trainer chose them: no component is
            given them, they are read off its answer.

    Outputs. gradient `[U, P, 2, T, V]`; micro_batches `[U, M, B]`, -1 where a micro-batch has fewer
    rows; unknown `[U]`; the others are single numbers.
        gradient: float [U, P, S, T, V]
            The gradient of the loss at each update, where each prefix comes first; 0 elsewhere.
        micro_batches: float, 3 dimensions, optional
            The rows of each micro-batch, in the order in which they were trained.
        unknown: float, 1 dimensions, optional
            The largest gradient at each update on logits that score no token of a completion, such
            as those of prompts.
        ref_gradient: float, optional
            The largest gradient on the reference.
        ref_training: float, optional
            1 where the reference was asked in training mode, else 0.

    Options.
        eos:
            The id that ends a completion, from 0 to 15.
        pad:
            The id that fills a completion up, from 0 to 15; may be `eos`.
        kind:
            The loss of a pair, by the sums of its log-probabilities: `sigmoid` (DPO), `hinge`,
            `ipo`, `robust` as in `preference-loss`; `orpo`, `simpo`, `sigmoid-norm`, `ipo-norm`
            (averages), `nca`, `bco-pair`, `sppo-hard`, `apo-zero`, `apo-down`, `exo`, `aot`,
            `aot-unpaired` (ranks in a micro-batch) as in `pair-objective`.
        beta:
            β > 0, the strength of the pull to the reference, or the scale of a reward.
        label_smoothing:
            ε from 0 to below 1, the share of exchanged pairs; `exo` needs more than 0, and `hinge`,
            `ipo`, `orpo`, `ipo-norm`, `nca`, `bco-pair`, `sppo-hard` and the `apo` kinds have none.
        gamma:
            γ ≥ 0, what β times the difference has to exceed; `sigmoid` and `simpo` only.
        has_reference:
            `True` or `False`: whether log-probabilities are compared with a reference's; `orpo` and
            `simpo` have none, whatever this says.
        alpha:
            α, where each log-probability x, or average, counts as (1 - e^{-αx})/α, as AlphaPO has
            it; 0 leaves it as it is, and is the only one with a reference or `orpo`.
        nll_weight:
            The weight ≥ 0 of the negative log-likelihood of the chosen completions: the α of CPO.
            `orpo` has to have one.
        nll:
            `token-mean` (over all tokens of the micro-batch), `sequence-mean` (over those of each
            completion, then over pairs) or `sequence-sum`: how that is averaged.
        nll_over:
            `completion` or `text`: whether prompts have a negative log-likelihood too.
        epochs:
            1 to 16: how many times the pairs are passed.
        mini_batches:
            1 to 16: how many updates a pass has.
        accumulation:
            1 to 16: how many micro-batches an update has.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "preference-step"
    inputs = ("tokens", "logits", "ref_logits", "micro_batches")

    def __init__(
        self,
        *,
        eos: int = 1,
        pad: int = 0,
        kind: Literal[
            "sigmoid",
            "hinge",
            "ipo",
            "robust",
            "orpo",
            "simpo",
            "sigmoid-norm",
            "ipo-norm",
            "nca",
            "bco-pair",
            "sppo-hard",
            "apo-zero",
            "apo-down",
            "exo",
            "aot",
            "aot-unpaired",
        ] = "sigmoid",
        beta: float = 0.1,
        label_smoothing: float = 0.0,
        gamma: float = 0.0,
        has_reference: bool = True,
        alpha: float = 0.0,
        nll_weight: float = 0.0,
        nll: Literal["token-mean", "sequence-mean", "sequence-sum"] = "token-mean",
        nll_over: Literal["completion", "text"] = "completion",
        epochs: int = 1,
        mini_batches: int = 1,
        accumulation: int = 1,
        rows: Literal["independent", "batch"] = "batch",
        deterministic: bool = True,
    ) -> None: ...


class KtoStep(Contract):
    """A whole trainer of KTO: the gradient by the logits at each update.

    Its data are single completions with a label, desirable or not. The loss compares each one's
    log-ratio with an estimate of the KL, and the bugs are in that estimate: it has a gradient, it
    may be negative, it is of one row, or of prompts with their own completions. The loss falls all
    the same. So the trainer is handed a model whose logits are a table, one row for each prefix,
    and what it does to that table is the answer.

    With r the log-ratio of a completion, and z the estimate of the KL, the loss of a row is
    w · (1 - σ(β(r - z))) where it is desirable, else w · (1 - σ(β(z - r))); w is the weight of its
    label. z is the mean log-ratio over the micro-batch of every prompt with the completion of
    another row, 0 at least, without a gradient. Each micro-batch has its mean, and the update the
    mean of those.

    Behind a prompt the table has a row for each beginning of its own completion. Beginnings of any
    other completion have one for each length: those are `kl_logits`.

    Inputs. `N` completions of `T` tokens, each of a prompt of its own; `U` updates, a vocabulary of
    `V`: tokens `[N, T]`, labels `[N]`, logits and kl_logits `[U, N, T, V]`, ref_logits and
    ref_kl_logits `[N, T, V]`. `U` is epochs · mini_batches.
        tokens: int [N, T]
            The ids of each completion up to `eos`, and `pad` behind it.
        labels: bool [N]
            Whether each completion is desirable.
        logits: float [U, N, T, V]
            The policy's logits for each token, at each update.
        ref_logits: float [N, T, V]
            The reference's logits for each token.
        kl_logits: float [U, N, T, V], optional
            The policy's logits behind each prompt and so many tokens of any completion that begins
            otherwise than its own, at each update; with `kto` only.
        ref_kl_logits: float [N, T, V], optional
            The same of the reference.
        micro_batches: int, 3 dimensions, optional
            The rows of each micro-batch, `[U, M, B]`, where the trainer chose them: no component is
            given them, they are read off its answer.

    Outputs. gradient `[U, N, T, V]`; micro_batches `[U, M, B]`, -1 where a micro-batch has fewer
    rows; kl_gradient and unknown `[U]`; the others are single numbers.
        gradient: float [U, N, T, V]
            The gradient of the loss at each update.
        micro_batches: float, 3 dimensions, optional
            The rows of each micro-batch, in the order in which they were trained.
        kl_gradient: float, 1 dimensions, optional
            The largest gradient at each update on `kl_logits`.
        unknown: float, 1 dimensions, optional
            The largest gradient at each update on logits that score no token of a completion.
        ref_gradient: float, optional
            The largest gradient on the reference.
        ref_training: float, optional
            1 where the reference was asked in training mode, else 0.

    Options.
        eos:
            The id that ends a completion, from 0 to 15.
        pad:
            The id that fills a completion up, from 0 to 15; may be `eos`.
        kind:
            `kto` or `apo-zero-unpaired`: whether a completion's log-ratio is compared with the
            estimate of the KL, or with 0.
        mismatched:
            `previous` or `next`: of which row of the micro-batch a prompt has the completion in the
            estimate of the KL.
        beta:
            β > 0, the strength of the pull to the reference.
        desirable_weight:
            The weight ≥ 0 of the loss of a desirable completion.
        undesirable_weight:
            The weight ≥ 0 of the loss of one that is not.
        epochs:
            1 to 16: how many times the completions are passed.
        mini_batches:
            1 to 16: how many updates a pass has.
        accumulation:
            1 to 16: how many micro-batches an update has.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "kto-step"
    inputs = ("tokens", "labels", "logits", "ref_logits", "kl_logits", "ref_kl_logits", "micro_batches")

    def __init__(
        self,
        *,
        eos: int = 1,
        pad: int = 0,
        kind: Literal["kto", "apo-zero-unpaired"] = "kto",
        mismatched: Literal["previous", "next"] = "previous",
        beta: float = 0.1,
        desirable_weight: float = 1.0,
        undesirable_weight: float = 1.0,
        epochs: int = 1,
        mini_batches: int = 1,
        accumulation: int = 1,
        rows: Literal["independent", "batch"] = "batch",
        deterministic: bool = True,
    ) -> None: ...


class RewardModelStep(Contract):
    """A whole trainer of reward models: the gradient by the score of each token at each update.

    The loss is one line, and the bugs are around it: a score that is read at a pad, at the end of
    the longest row or before the end; a margin with the other sign; a rejected completion of
    another pair. The accuracy rises all the same. So the trainer is handed a model whose scores
    are a table, one for each token, and what it does to that table is the answer.

    A score is one of all tokens up to its own. Where both completions of a pair begin alike, the
    scores of the chosen one hold, the others are not read, and the gradient is there too. Behind
    an end each pad has a score of its own, which no right trainer reads.

    The loss of an update is the mean over its pairs of -log σ(r - s - margin) + center · (r + s)²,
    with r the score of the chosen completion and s that of the rejected one. All micro-batches are
    of one size, so the mean of their means is the same.

    Inputs. `P` pairs of 2 completions, the chosen one first, of `T` tokens; `U` updates: tokens
    `[P, 2, T]`, scores `[U, P, 2, T]`, margins `[P]`. `U` is epochs · mini_batches. A row is a
    completion: that of pair p is row 2·p, and 2·p + 1.
        tokens: int [P, S, T]
            The ids of each completion up to `eos`, and `pad` behind it.
        scores: float [U, P, S, T]
            The model's score of all tokens up to each one, at each update.
        margins: float [P], optional
            What the difference of a pair's scores has to exceed, with `has_margins`.
        micro_batches: int, 3 dimensions, optional
            The rows of each micro-batch, `[U, M, B]`, where the trainer chose them: no component is
            given them, they are read off its answer.

    Outputs. gradient `[U, P, 2, T]`; micro_batches `[U, M, B]`, -1 where a micro-batch has fewer
    rows; unknown `[U]`.
        gradient: float [U, P, S, T]
            The gradient of the loss at each update, where the same tokens come first; 0 elsewhere.
        micro_batches: float, 3 dimensions, optional
            The rows of each micro-batch, in the order in which they were trained.
        unknown: float, 1 dimensions, optional
            The largest gradient at each update on scores of anything else: prompts without a
            completion, tokens behind pads.

    Options.
        eos:
            The id that ends a completion, from 0 to 15.
        pad:
            The id that fills a completion up, from 0 to 15; may be `eos`.
        pooled:
            `end` or `last-non-pad`: which token's score is that of a completion, its end, or the
            last one that is not `pad`, as transformers' `AutoModelForSequenceClassification` has
            it. The two differ where `pad` is `eos`: then it is the one before the end.
        center:
            The coefficient ≥ 0 of the squared sum of a pair's scores, which pulls them to 0.
        has_margins:
            `True` or `False`: whether each pair has a margin, in `margins`.
        epochs:
            1 to 16: how many times the pairs are passed.
        mini_batches:
            1 to 16: how many updates a pass has.
        accumulation:
            1 to 16: how many micro-batches an update has.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "reward-model-step"
    inputs = ("tokens", "scores", "margins", "micro_batches")

    def __init__(
        self,
        *,
        eos: int = 1,
        pad: int = 0,
        pooled: Literal["end", "last-non-pad"] = "end",
        center: float = 0.0,
        has_margins: bool = False,
        epochs: int = 1,
        mini_batches: int = 1,
        accumulation: int = 1,
        rows: Literal["independent", "batch"] = "batch",
        deterministic: bool = True,
    ) -> None: ...


class CriticStep(Contract):
    """A whole trainer of a critic: the gradient by the value of each token at each update.

    PPO trains a critic towards returns. The loss is three lines, and the bugs are around it: values
    that are read one place late, a return that counts on what follows the end, old values that are
    computed again, a mean of the means of micro-batches. The loss falls all the same. So the
    trainer is handed a critic whose values are a table, one for each token, and what it does to
    that table is the answer.

    The value of a token is that of the state in which it is chosen: of the prompt and the tokens
    before it. A model has it at the place before the token's own. Old values are those of the
    first update of a generation, in which its completions are sampled.

    With `targets: gae` the trainer makes the returns: a token's reward is the score of its
    completion at the last token, less β times the divergence, and generalised advantage estimation
    follows. The value behind the last token is 0. With `targets: given` it is handed the returns.

    Inputs. `N` completions of `T` tokens, each of a prompt of its own, `U` updates: tokens, mask,
    kls and returns `[N, T]`, scores `[N]`, values `[U, N, T]`. `U` is generations · epochs ·
    mini_batches. Completions come to the generations in order, equally many to each.
        tokens: int [N, T]
            The ids of each completion up to `eos`, if it comes to its end, and `pad` behind it.
        mask: bool [N, T]
            Which tokens the policy wrote: the first and the last one of each completion, and with
            `holes: false` all between them.
        values: float [U, N, T]
            The critic's value of the state before each token, at each update; behind an end that of
            the whole completion.
        scores: float [N], optional
            The score of each completion; only with `targets: gae`.
        kls: float [N, T], optional
            The divergence of each token, in nats; only with `beta` > 0.
        returns: float [N, T], optional
            What the value of each token should be; only with `targets: given`.
        micro_batches: int, 3 dimensions, optional
            The rows of each micro-batch, `[U, M, B]`, where the trainer chose them: no component is
            given them, they are read off its answer.

    Outputs. gradient `[U, N, T]`; micro_batches `[U, M, B]`, -1 where a micro-batch has fewer rows;
    unknown `[U]`.
        gradient: float [U, N, T]
            The gradient of the loss by each value at each update.
        micro_batches: float, 3 dimensions, optional
            The rows of each micro-batch, in the order in which they were trained.
        unknown: float, 1 dimensions, optional
            The largest gradient at each update on values of anything else, such as a part of a
            prompt.

    Options.
        eos:
            The id that ends a completion, from 0 to 15.
        pad:
            The id that fills a completion up, from 0 to 15; may be `eos`.
        targets:
            `gae` or `given`: whether the trainer makes the returns, from scores and old values, or
            is handed them.
        gamma:
            With `targets: gae`, the discount of one token, 0 to 1.
        lam:
            With `targets: gae`, λ, how far ahead rewards are trusted over values: 0 to 1.
        beta:
            With `targets: gae`, the weight ≥ 0 of the divergence, in `kls`, in the rewards.
        holes:
            `False` or `True`: whether there are tokens between those of the policy, such as those
            of a tool, which are not trained.
        masked:
            `skip` (tokens that are not the policy's are no transitions) or `zero` (they are steps
            with reward and value 0: time passes).
        clip:
            Null, or c > 0: how far from its old value a value may move before the clipped error
            counts where it is the larger.
        factor:
            A number > 0 that multiplies the loss.
        aggregate:
            `token-mean`, `token-sum`, `seq-mean-token-mean` or `seq-mean-token-sum`.
        over:
            `update` or `micro-batch`: over which rows the mean is taken.
        generations:
            1 to 16: how many times completions are sampled.
        epochs:
            1 to 16: how many times the completions of a generation are passed.
        mini_batches:
            1 to 16: how many updates a pass has.
        accumulation:
            1 to 16: how many micro-batches an update has.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "critic-step"
    inputs = ("tokens", "mask", "values", "scores", "kls", "returns", "micro_batches")

    def __init__(
        self,
        *,
        eos: int = 1,
        pad: int = 0,
        targets: Literal["gae", "given"] = "gae",
        gamma: float = 1.0,
        lam: float = 0.95,
        beta: float = 0.0,
        holes: bool = False,
        masked: Literal["skip", "zero"] = "skip",
        clip: float | None = None,
        factor: float = 0.5,
        aggregate: Literal[
            "token-mean",
            "token-sum",
            "seq-mean-token-mean",
            "seq-mean-token-sum",
            "seq-mean-token-sum-norm",
        ] = "token-mean",
        over: Literal["micro-batch", "update"] = "update",
        generations: int = 1,
        epochs: int = 1,
        mini_batches: int = 1,
        accumulation: int = 1,
        rows: Literal["independent", "batch"] = "batch",
        deterministic: bool = True,
    ) -> None: ...


class GrpoStep(Contract):
    """A whole GRPO trainer: the gradient by the logits at each update, from completions and rewards.

    Most bugs of a trainer are in no function of its own: advantages that stay behind when their
    rows are shuffled, old log-probabilities of the wrong policy, micro-batches that are averaged
    twice, a temperature that one of two passes forgets. Each component is right, and the update is
    wrong. So nothing is taken out of the trainer. It is handed a model whose logits are a table,
    one row for each prefix, and what it does to that table is the answer.

    A prefix that several completions share has one row: the logits where it comes first hold, the
    others are not read, and its gradient is there too.

    Inputs. `P` prompts of `G` completions of `T` tokens, `K` reward functions, `U` updates, a
    vocabulary of `V`: tokens `[P, G, T]`, rewards `[P, G, K]`, logits `[U, P, G, T, V]`, ref_logits
    `[P, G, T, V]`. `U` is generations · iterations · mini_batches. Prompts come to the generations
    in order, equally many to each. A row is a completion: the g-th of the p-th prompt is row p·G +
    g.
        tokens: int [P, G, T]
            The ids of each completion up to the first of `eos`, and `pad` behind it.
        rewards: float [P, G, K]
            What each reward function gives; NaN where it does not score. Equal completions of a
            prompt have equal rewards.
        logits: float [U, P, G, T, V]
            The policy's logits for each token, at each update. Those of a generation's first update
            are those that its completions were sampled from.
        ref_logits: float [P, G, T, V], optional
            The reference's logits for each token, with `beta` > 0.
        micro_batches: int, 3 dimensions, optional
            The rows of each micro-batch, `[U, M, B]`, where the trainer chose them: no component is
            given them, they are read off its answer.

    Outputs. gradient `[U, P, G, T, V]`; micro_batches `[U, M, B]`, -1 where a micro-batch has fewer
    rows; unknown `[U]`; scored `[P, G, K]`; the others are single numbers.
        gradient: float [U, P, G, T, V]
            The gradient of the loss at each update, where each prefix comes first; 0 elsewhere.
        micro_batches: float, 3 dimensions, optional
            The rows of each micro-batch, in the order in which they were trained.
        unknown: float, 1 dimensions, optional
            The largest gradient at each update on logits that score no token of a completion.
        ref_gradient: float, optional
            The largest gradient on the reference.
        ref_training: float, optional
            1 where the reference was asked in training mode, else 0.
        scored: float [P, G, K], optional
            How often each reward function was asked about each completion.

    Options.
        eos:
            The ids that end a completion, one at least.
        pad:
            The id that fills a completion up; may be one of `eos`.
        unfinished:
            `keep` or `drop`: whether a completion without an end is trained.
        weights:
            One weight per reward function; `None`: all are 1.
        unscored:
            `avoid` or `skip`: NaN rewards are never generated, or add nothing.
        baseline:
            `mean`, `leave-one-out` or `none`: what is taken off a reward.
        scale:
            `std`, `batch-std`, `loo-std` or `none`: divide by the deviation of the group's rewards,
            of the generation's, of the other rows of the group, or not at all.
        ddof:
            `1` or `0`: unbiased or biased variance.
        epsilon:
            A number ≥ 0 that is added to the deviation.
        temperature:
            A number > 0 that divides the logits, of the reference too.
        objective:
            `ppo-clip`, `reinforce` or `cispo`, as in `policy-loss`.
        ratio:
            `token`, `sequence` or `sequence-token`: what a ratio is taken of, as in `policy-loss`.
        clip_low:
            The lower bound of the ratio is 1 - clip_low; 0 to 1.
        clip_high:
            The upper bound of the ratio is 1 + clip_high; a number ≥ 0.
        clip_bounds:
            `relative` or, with `cispo`, `absolute` (at most clip_high itself).
        dual_clip:
            `None`, or c > 1: with A < 0 a token's loss is at most -c·A.
        beta:
            The weight of the divergence from the reference, ≥ 0; with 0 there is no reference.
        kl_estimator:
            `k3`, `k1`, `k2` or `abs`: the estimator of that divergence.
        kl_weighted:
            `True` or `False`: whether a token's divergence is multiplied by its ratio, through
            which the gradient flows too (TRL's `use_bias_correction_kl`).
        kl_in:
            `loss` or `reward`: whether the divergence is added to the loss, or taken off the reward
            of the completion, summed over it and of the policy that sampled.
        aggregate:
            `token-mean`, `token-sum`, `seq-mean-token-mean`, `seq-mean-token-sum` or
            `seq-mean-token-sum-norm` (divided by norm_length).
        over:
            `micro-batch`, `update` or, with `token-mean`, `generation`: over which rows the mean is
            taken. `generation`: the sum over an update, divided by the number of tokens that an
            update of its generation has in the mean.
        norm_length:
            An integer > 0: the constant of `seq-mean-token-sum-norm`.
        empty_rows:
            `count` or `skip`: whether a completion without a trained token counts in the number of
            rows.
        action:
            `token` or `completion`: what a ratio and a loss are of. The log-probability of a
            completion is the sum of those of its tokens; needs `ratio: token`.
        generations:
            1 to 16: how many times completions are sampled.
        iterations:
            1 to 16: how many times the completions of a generation are passed.
        mini_batches:
            1 to 16: how many updates a pass has.
        accumulation:
            1 to 16: how many micro-batches an update has.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "grpo-step"
    inputs = ("tokens", "rewards", "logits", "ref_logits", "micro_batches")

    def __init__(
        self,
        *,
        eos: Sequence[int] = (1,),
        pad: int = 0,
        unfinished: Literal["keep", "all", "drop"] = "keep",
        weights: Sequence[float] | None = None,
        unscored: Literal["avoid", "skip"] = "avoid",
        baseline: Literal["mean", "leave-one-out", "none"] = "mean",
        scale: Literal["std", "batch-std", "loo-std", "none"] = "std",
        ddof: int = 1,
        epsilon: float = 0.0001,
        temperature: float = 1.0,
        objective: Literal["ppo-clip", "reinforce", "cispo"] = "ppo-clip",
        ratio: Literal["token", "sequence", "sequence-token"] = "token",
        clip_low: float = 0.2,
        clip_high: float = 0.2,
        clip_bounds: Literal["relative", "absolute"] = "relative",
        dual_clip: float | None = None,
        beta: float = 0.0,
        kl_estimator: Literal["k3", "k1", "k2", "abs"] = "k3",
        kl_weighted: bool = False,
        kl_in: Literal["loss", "reward"] = "loss",
        aggregate: Literal[
            "token-mean",
            "token-sum",
            "seq-mean-token-mean",
            "seq-mean-token-sum",
            "seq-mean-token-sum-norm",
        ] = "seq-mean-token-mean",
        over: Literal["micro-batch", "update", "generation"] = "micro-batch",
        norm_length: int | None = None,
        empty_rows: Literal["skip", "count"] = "count",
        action: Literal["token", "completion"] = "token",
        generations: int = 1,
        iterations: int = 1,
        mini_batches: int = 1,
        accumulation: int = 1,
        rows: Literal["independent", "batch"] = "batch",
        deterministic: bool = True,
    ) -> None: ...


class MetricReduction(Contract):
    """One number from all ranks: mean, extremes, deviation, sum and count of a batch in shards.

    What a dashboard shows of a step is reduced twice, on each rank and over the ranks, and the
    ranks never hold as many tokens each. A metric is right where it is that of all numbers
    together, wherever the batch was cut: a wrong one hides the bugs that it is there to show.

    Inputs. `[n, T]` in a shard of `n` rows of `T` tokens, both of its own.
        shards: list of (values: float, 2 dimensions; targets: float, 2 dimensions; mask: bool, 2 dimensions)
            The shards of one step, in order.

    Outputs. Single numbers.
        mean: float, optional
            The mean of all numbers.
        min: float, optional
            The least of them.
        max: float, optional
            The largest of them.
        std: float, optional
            Their standard deviation.
        sum: float, optional
            Their sum; 0 of none.
        count: float, optional
            How many there are.
        explained_variance: float, optional
            1 - Var(target - value) / (Var(target) + ε); NaN for equal targets and no ε, and for no
            more than `ddof` numbers.

    Options.
        unit:
            `token`, `row-mean` or `row-sum`: what one number is, of values and of targets. A row
            without a token that counts is none.
        ddof:
            `1` or `0`: unbiased or biased variance, of `std` and of both variances of
            `explained_variance`.
        one:
            `nan`, `zero` or `refuse`: the `std` of no more than `ddof` numbers.
        unscored:
            `avoid`, `skip` or `zero`: values that are NaN are never generated, are left out (with
            their targets), or count as 0.
        ev_epsilon:
            A number ≥ 0 that is added to the variance of the targets.
        empty_mask:
            `zero`, `nan`, `refuse` or `avoid`: what all but `sum` and `count` are where there is no
            number at all. Those two are 0.
        holes:
            `True` or `False`: whether a mask may have gaps inside a row.
        masked_values:
            `finite` or `any`: what may stand under the mask.
        rows:
            `independent` or `batch`: whether a row's result may depend on other rows.
        deterministic:
            `True` or `False`: whether two equal calls must agree.
    """

    id = "metric-reduction"
    inputs = ("shards",)

    def __init__(
        self,
        *,
        unit: Literal["token", "row-mean", "row-sum"] = "token",
        ddof: int = 1,
        one: Literal["nan", "zero", "refuse"] = "nan",
        unscored: Literal["avoid", "skip", "zero"] = "avoid",
        ev_epsilon: float = 0.0,
        empty_mask: Literal["zero", "nan", "refuse", "avoid"] = "zero",
        holes: bool = False,
        masked_values: Literal["finite", "any"] = "finite",
        rows: Literal["independent", "batch"] = "independent",
        deterministic: bool = True,
    ) -> None: ...


BY_ID: dict[str, type[Contract]] = {
    "group-sampling": GroupSampling,
    "turn-mask": TurnMask,
    "batch-collation": BatchCollation,
    "sequence-packing": SequencePacking,
    "batch-partition": BatchPartition,
    "reward-function": RewardFunction,
    "length-penalty": LengthPenalty,
    "reward-combination": RewardCombination,
    "completion-decoder": CompletionDecoder,
    "answer-extractor": AnswerExtractor,
    "token-decoder": TokenDecoder,
    "completion-mask": CompletionMask,
    "sampling-filter": SamplingFilter,
    "group-filter": GroupFilter,
    "group-advantage": GroupAdvantage,
    "outcome-advantage": OutcomeAdvantage,
    "token-rewards": TokenRewards,
    "gae": Gae,
    "rollout-gae": RolloutGae,
    "returns": Returns,
    "whiten": Whiten,
    "model-forward": ModelForward,
    "token-log-probs": TokenLogProbs,
    "token-entropy": TokenEntropy,
    "kl-estimate": KlEstimate,
    "importance-weights": ImportanceWeights,
    "policy-loss": PolicyLoss,
    "entropy-bonus": EntropyBonus,
    "value-loss": ValueLoss,
    "preference-loss": PreferenceLoss,
    "pair-objective": PairObjective,
    "accumulated-loss": AccumulatedLoss,
    "policy-update": PolicyUpdate,
    "sft-step": SftStep,
    "preference-step": PreferenceStep,
    "kto-step": KtoStep,
    "reward-model-step": RewardModelStep,
    "critic-step": CriticStep,
    "grpo-step": GrpoStep,
    "metric-reduction": MetricReduction,
}


@overload
def contract(
    name: Literal["group-sampling"],
    *,
    group_size: int = ...,
    prompts_per_batch: int | None = ...,
    repeats: int = ...,
    layout: Literal["interleave", "tile"] = ...,
    shuffle: bool = ...,
    drop_last: bool = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> GroupSampling: ...


@overload
def contract(
    name: Literal["turn-mask"],
    *,
    bos: Sequence[int] = ...,
    start: Sequence[int] = ...,
    end: Sequence[int] = ...,
    role_ids: Sequence[int] = ...,
    train: Literal["assistant", "last-assistant", "last", "all"] = ...,
    train_header: bool = ...,
    train_end: bool = ...,
    max_length: int | None = ...,
    ignore: int = ...,
    shift: Literal["none", "next"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> TurnMask: ...


@overload
def contract(
    name: Literal["batch-collation"],
    *,
    layout: Literal["right", "left", "split"] = ...,
    pad: int = ...,
    ignore: int = ...,
    train_on: Literal["completion", "all"] = ...,
    max_length: int | None = ...,
    truncate: Literal["keep-start", "keep-end", "refuse"] = ...,
    multiple_of: int | None = ...,
    shift: Literal["none", "next"] = ...,
    pad_positions: Literal["any", "zero"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> BatchCollation: ...


@overload
def contract(
    name: Literal["sequence-packing"],
    *,
    capacity: int = ...,
    width: Literal["capacity", "needed"] = ...,
    pad: int = ...,
    ignore: int = ...,
    overlong: Literal["avoid", "truncate", "split", "refuse"] = ...,
    cut: Literal["capacity", "anywhere"] = ...,
    split_positions: Literal["restart", "any"] = ...,
    shift: Literal["none", "next"] = ...,
    first_label: Literal["keep", "ignore"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> SequencePacking: ...


@overload
def contract(
    name: Literal["batch-partition"],
    *,
    mode: Literal["count", "capacity"] = ...,
    parts: int = ...,
    equal_size: bool = ...,
    balance: bool = ...,
    capacity: int = ...,
    oversized: Literal["avoid", "alone", "refuse"] = ...,
    min_parts: int = ...,
    multiple_of: int = ...,
    contiguous: bool = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> BatchPartition: ...


@overload
def contract(
    name: Literal["reward-function"],
    *,
    judges: Literal["correctness", "format", "incremental-format", "none"] = ...,
    template: str = ...,
    answer_family: Literal["integer", "decimal", "text", "latex"] = ...,
    range: Sequence[float] = ...,
    unscored: Literal["refuse", "allow"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> RewardFunction: ...


@overload
def contract(
    name: Literal["length-penalty"],
    *,
    shape: Literal["linear-overlong", "linear-unbounded", "cosine", "step"] = ...,
    max_length: int = ...,
    buffer: int = ...,
    min: float = ...,
    max: float = ...,
    factor: float = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> LengthPenalty: ...


@overload
def contract(
    name: Literal["reward-combination"],
    *,
    weights: Sequence[float] | None = ...,
    weight_norm: Literal["none", "sum"] = ...,
    unscored: Literal["avoid", "skip"] = ...,
    nothing: Literal["nan", "zero"] = ...,
    normalise: Literal["none", "group"] = ...,
    divide: bool = ...,
    ddof: int = ...,
    epsilon: float = ...,
    singleton: Literal["zero", "reward", "avoid"] = ...,
    final: Literal["none", "add", "root"] = ...,
    final_ddof: int = ...,
    final_epsilon: float = ...,
    layout: Literal["any", "contiguous"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> RewardCombination: ...


@overload
def contract(
    name: Literal["completion-decoder"],
    *,
    artefacts: Sequence[str] = ...,
    keep: Sequence[str] = ...,
    think: Literal["keep", "strip-closed", "strip-always", "last-segment"] = ...,
    think_tags: Sequence[str] = ...,
    trim: bool = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> CompletionDecoder: ...


@overload
def contract(
    name: Literal["answer-extractor"],
    *,
    format: Literal["xml-tag", "boxed", "hash"] = ...,
    tag: str = ...,
    pick: Literal["last", "first"] = ...,
    missing: Literal["null", "empty", "whole"] = ...,
    trim: bool = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> AnswerExtractor: ...


@overload
def contract(
    name: Literal["token-decoder"],
    *,
    vocabulary: Mapping[int, str] = ...,
    specials: Sequence[int] = ...,
    pad: int = ...,
    eos: int = ...,
    skip_special: bool = ...,
    padding_side: Literal["right", "left"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> TokenDecoder: ...


@overload
def contract(
    name: Literal["completion-mask"],
    *,
    eos: Sequence[int] = ...,
    pad: int = ...,
    include_eos: bool = ...,
    unfinished: Literal["keep", "all", "drop"] = ...,
    empty: Literal["generate", "avoid"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> CompletionMask: ...


@overload
def contract(
    name: Literal["sampling-filter"],
    *,
    temperature: float = ...,
    top_k: int | None = ...,
    top_p: float | None = ...,
    min_p: float | None = ...,
    order: Literal["temperature-first", "filters-first"] = ...,
    min_keep: int = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> SamplingFilter: ...


@overload
def contract(
    name: Literal["group-filter"],
    *,
    criterion: Literal["spread", "range"] = ...,
    tolerance: float = ...,
    range: Sequence[float] = ...,
    singleton: Literal["drop", "keep", "avoid"] = ...,
    limit: int | None = ...,
    layout: Literal["any", "contiguous"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> GroupFilter: ...


@overload
def contract(
    name: Literal["group-advantage"],
    *,
    baseline: Literal["mean", "leave-one-out", "none"] = ...,
    scale: Literal["std", "batch-std", "loo-std", "none"] = ...,
    ddof: int = ...,
    epsilon: float = ...,
    epsilon_mode: Literal["add", "clamp"] = ...,
    singleton: Literal["zero", "reward", "avoid"] = ...,
    layout: Literal["any", "contiguous"] = ...,
    unscored: Literal["avoid", "exclude"] = ...,
    reward_range: Sequence[float] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> GroupAdvantage: ...


@overload
def contract(
    name: Literal["outcome-advantage"],
    *,
    baseline: Literal["mean", "leave-one-out", "none"] = ...,
    scale: Literal["std", "batch-std", "loo-std", "none"] = ...,
    ddof: int = ...,
    epsilon: float = ...,
    epsilon_mode: Literal["add", "clamp"] = ...,
    singleton: Literal["zero", "reward", "avoid"] = ...,
    layout: Literal["any", "contiguous"] = ...,
    unscored: Literal["avoid", "exclude"] = ...,
    reward_range: Sequence[float] = ...,
    empty_rows: Literal["count", "exclude"] = ...,
    holes: bool = ...,
    masked_values: Literal["finite", "any"] = ...,
    masked_output: Literal["zero", "any"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> OutcomeAdvantage: ...


@overload
def contract(
    name: Literal["token-rewards"],
    *,
    beta: float = ...,
    kl_estimator: Literal["k3", "k1", "k2", "abs"] = ...,
    log_ratio_clamp: float | None = ...,
    kl_clamp: Sequence[float] | None = ...,
    place: Literal["last", "after-last"] = ...,
    unfinished: Literal["none", "subtract", "replace", "scale"] = ...,
    penalty: float = ...,
    score_clip: Sequence[float] | None = ...,
    report: Literal["token-mean", "row-mean", "row-sum"] = ...,
    empty_mask: Literal["zero", "nan", "refuse", "avoid"] = ...,
    empty_rows: Literal["skip", "count"] = ...,
    holes: bool = ...,
    masked_values: Literal["finite", "any"] = ...,
    masked_output: Literal["zero", "any"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> TokenRewards: ...


@overload
def contract(
    name: Literal["gae"],
    *,
    gamma: float = ...,
    lam: float = ...,
    masked: Literal["skip", "zero"] = ...,
    whiten: bool = ...,
    empty_mask: Literal["zero", "nan", "refuse", "avoid"] = ...,
    holes: bool = ...,
    masked_values: Literal["finite", "any"] = ...,
    masked_output: Literal["zero", "any"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> Gae: ...


@overload
def contract(
    name: Literal["rollout-gae"],
    *,
    gamma: float = ...,
    lam: float = ...,
    done_convention: Literal["after", "before"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> RolloutGae: ...


@overload
def contract(
    name: Literal["returns"],
    *,
    gamma: float = ...,
    masked: Literal["skip", "zero"] = ...,
    holes: bool = ...,
    masked_values: Literal["finite", "any"] = ...,
    masked_output: Literal["zero", "any"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> Returns: ...


@overload
def contract(
    name: Literal["whiten"],
    *,
    ddof: int = ...,
    epsilon: float = ...,
    epsilon_mode: Literal["add", "clamp"] = ...,
    shift_mean: bool = ...,
    empty_mask: Literal["zero", "nan", "refuse", "avoid"] = ...,
    holes: bool = ...,
    masked_values: Literal["finite", "any"] = ...,
    masked_output: Literal["zero", "any"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> Whiten: ...


@overload
def contract(
    name: Literal["model-forward"],
    *,
    vocabulary: int = ...,
    columns: int = ...,
    padding: Literal["any", "right", "left", "none"] = ...,
    positions: Literal["counted", "given"] = ...,
    packed: bool = ...,
    empty_rows: bool = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> ModelForward: ...


@overload
def contract(
    name: Literal["token-log-probs"],
    *,
    temperature: float = ...,
    shift: Literal["none", "next"] = ...,
    gradient: bool = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> TokenLogProbs: ...


@overload
def contract(
    name: Literal["token-entropy"],
    *,
    temperature: float = ...,
    neg_inf: Literal["avoid", "zero", "nan"] = ...,
    gradient: bool = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> TokenEntropy: ...


@overload
def contract(
    name: Literal["kl-estimate"],
    *,
    estimator: Literal["k3", "k1", "k2", "abs"] = ...,
    log_ratio_clamp: float | None = ...,
    extreme_ratios: Literal["avoid", "finite"] = ...,
    clamp: Sequence[float] | None = ...,
    gradient: Literal["value", "k2", "none"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> KlEstimate: ...


@overload
def contract(
    name: Literal["importance-weights"],
    *,
    level: Literal["token", "sequence", "geometric"] = ...,
    clamp_low: float | None = ...,
    clamp_high: float | None = ...,
    select: Literal["none", "token", "sequence", "geometric"] = ...,
    select_low: float | None = ...,
    select_high: float | None = ...,
    veto: float | None = ...,
    drift: float | None = ...,
    rejected: Literal["zero", "unchanged"] = ...,
    normalize: Literal["none", "tokens", "sequences"] = ...,
    log_ratio_clamp: float | None = ...,
    extreme_ratios: Literal["avoid", "finite"] = ...,
    empty_mask: Literal["zero", "nan", "refuse", "avoid"] = ...,
    holes: bool = ...,
    masked_values: Literal["finite", "any"] = ...,
    masked_output: Literal["zero", "any"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> ImportanceWeights: ...


@overload
def contract(
    name: Literal["policy-loss"],
    *,
    objective: Literal["ppo-clip", "reinforce", "cispo"] = ...,
    ratio: Literal["token", "sequence", "sequence-token"] = ...,
    clip_low: float = ...,
    clip_high: float = ...,
    clip_bounds: Literal["relative", "absolute"] = ...,
    dual_clip: float | None = ...,
    beta: float = ...,
    kl_estimator: Literal["k3", "k1", "k2", "abs"] = ...,
    kl_log_ratio_clamp: float | None = ...,
    kl_clamp: Sequence[float] | None = ...,
    advantage_shape: Literal["token", "row"] = ...,
    approx_kl: Literal["k1", "k2", "k3"] = ...,
    aggregate: Literal[
        "token-mean",
        "token-sum",
        "seq-mean-token-mean",
        "seq-mean-token-sum",
        "seq-mean-token-sum-norm",
    ] = ...,
    norm_length: int | None = ...,
    log_ratio_clamp: float | None = ...,
    extreme_ratios: Literal["avoid", "finite"] = ...,
    empty_mask: Literal["zero", "nan", "refuse", "avoid"] = ...,
    empty_rows: Literal["skip", "count"] = ...,
    holes: bool = ...,
    masked_values: Literal["finite", "any"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> PolicyLoss: ...


@overload
def contract(
    name: Literal["entropy-bonus"],
    *,
    coefficient: float = ...,
    temperature: float = ...,
    aggregate: Literal[
        "token-mean",
        "token-sum",
        "seq-mean-token-mean",
        "seq-mean-token-sum",
        "seq-mean-token-sum-norm",
    ] = ...,
    norm_length: int | None = ...,
    top_share: float | None = ...,
    neg_inf: Literal["avoid", "zero"] = ...,
    empty_mask: Literal["zero", "nan", "refuse", "avoid"] = ...,
    empty_rows: Literal["skip", "count"] = ...,
    holes: bool = ...,
    masked_values: Literal["finite", "any"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> EntropyBonus: ...


@overload
def contract(
    name: Literal["value-loss"],
    *,
    clip: float | None = ...,
    factor: float = ...,
    aggregate: Literal[
        "token-mean",
        "token-sum",
        "seq-mean-token-mean",
        "seq-mean-token-sum",
        "seq-mean-token-sum-norm",
    ] = ...,
    norm_length: int | None = ...,
    empty_mask: Literal["zero", "nan", "refuse", "avoid"] = ...,
    empty_rows: Literal["skip", "count"] = ...,
    holes: bool = ...,
    masked_values: Literal["finite", "any"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> ValueLoss: ...


@overload
def contract(
    name: Literal["preference-loss"],
    *,
    kind: Literal["sigmoid", "hinge", "ipo", "robust"] = ...,
    beta: float = ...,
    label_smoothing: float = ...,
    margin: float = ...,
    reference_free: bool = ...,
    reduction: Literal["none", "mean"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> PreferenceLoss: ...


@overload
def contract(
    name: Literal["pair-objective"],
    *,
    kind: Literal[
        "orpo",
        "simpo",
        "sigmoid-norm",
        "ipo-norm",
        "nca",
        "bco-pair",
        "sppo-hard",
        "apo-zero",
        "apo-down",
        "exo",
        "aot",
        "aot-unpaired",
    ] = ...,
    beta: float = ...,
    gamma: float = ...,
    label_smoothing: float = ...,
    sft: bool = ...,
    reduction: Literal["none", "mean"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> PairObjective: ...


@overload
def contract(
    name: Literal["accumulated-loss"],
    *,
    aggregate: Literal[
        "token-mean",
        "token-sum",
        "seq-mean-token-mean",
        "seq-mean-token-sum",
        "seq-mean-token-sum-norm",
    ] = ...,
    norm_length: int | None = ...,
    empty_mask: Literal["zero", "nan", "refuse", "avoid"] = ...,
    empty_rows: Literal["skip", "count"] = ...,
    holes: bool = ...,
    masked_values: Literal["finite", "any"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> AccumulatedLoss: ...


@overload
def contract(
    name: Literal["policy-update"],
    *,
    beta: float = ...,
    tolerance: float = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> PolicyUpdate: ...


@overload
def contract(
    name: Literal["sft-step"],
    *,
    eos: int = ...,
    pad: int = ...,
    trained: Literal["completion", "text", "turns"] = ...,
    loss: Literal["nll", "dft"] = ...,
    aggregate: Literal[
        "token-mean",
        "token-sum",
        "seq-mean-token-mean",
        "seq-mean-token-sum",
        "seq-mean-token-sum-norm",
    ] = ...,
    over: Literal["micro-batch", "update"] = ...,
    epochs: int = ...,
    mini_batches: int = ...,
    accumulation: int = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> SftStep: ...


@overload
def contract(
    name: Literal["preference-step"],
    *,
    eos: int = ...,
    pad: int = ...,
    kind: Literal[
        "sigmoid",
        "hinge",
        "ipo",
        "robust",
        "orpo",
        "simpo",
        "sigmoid-norm",
        "ipo-norm",
        "nca",
        "bco-pair",
        "sppo-hard",
        "apo-zero",
        "apo-down",
        "exo",
        "aot",
        "aot-unpaired",
    ] = ...,
    beta: float = ...,
    label_smoothing: float = ...,
    gamma: float = ...,
    has_reference: bool = ...,
    alpha: float = ...,
    nll_weight: float = ...,
    nll: Literal["token-mean", "sequence-mean", "sequence-sum"] = ...,
    nll_over: Literal["completion", "text"] = ...,
    epochs: int = ...,
    mini_batches: int = ...,
    accumulation: int = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> PreferenceStep: ...


@overload
def contract(
    name: Literal["kto-step"],
    *,
    eos: int = ...,
    pad: int = ...,
    kind: Literal["kto", "apo-zero-unpaired"] = ...,
    mismatched: Literal["previous", "next"] = ...,
    beta: float = ...,
    desirable_weight: float = ...,
    undesirable_weight: float = ...,
    epochs: int = ...,
    mini_batches: int = ...,
    accumulation: int = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> KtoStep: ...


@overload
def contract(
    name: Literal["reward-model-step"],
    *,
    eos: int = ...,
    pad: int = ...,
    pooled: Literal["end", "last-non-pad"] = ...,
    center: float = ...,
    has_margins: bool = ...,
    epochs: int = ...,
    mini_batches: int = ...,
    accumulation: int = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> RewardModelStep: ...


@overload
def contract(
    name: Literal["critic-step"],
    *,
    eos: int = ...,
    pad: int = ...,
    targets: Literal["gae", "given"] = ...,
    gamma: float = ...,
    lam: float = ...,
    beta: float = ...,
    holes: bool = ...,
    masked: Literal["skip", "zero"] = ...,
    clip: float | None = ...,
    factor: float = ...,
    aggregate: Literal[
        "token-mean",
        "token-sum",
        "seq-mean-token-mean",
        "seq-mean-token-sum",
        "seq-mean-token-sum-norm",
    ] = ...,
    over: Literal["micro-batch", "update"] = ...,
    generations: int = ...,
    epochs: int = ...,
    mini_batches: int = ...,
    accumulation: int = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> CriticStep: ...


@overload
def contract(
    name: Literal["grpo-step"],
    *,
    eos: Sequence[int] = ...,
    pad: int = ...,
    unfinished: Literal["keep", "all", "drop"] = ...,
    weights: Sequence[float] | None = ...,
    unscored: Literal["avoid", "skip"] = ...,
    baseline: Literal["mean", "leave-one-out", "none"] = ...,
    scale: Literal["std", "batch-std", "loo-std", "none"] = ...,
    ddof: int = ...,
    epsilon: float = ...,
    temperature: float = ...,
    objective: Literal["ppo-clip", "reinforce", "cispo"] = ...,
    ratio: Literal["token", "sequence", "sequence-token"] = ...,
    clip_low: float = ...,
    clip_high: float = ...,
    clip_bounds: Literal["relative", "absolute"] = ...,
    dual_clip: float | None = ...,
    beta: float = ...,
    kl_estimator: Literal["k3", "k1", "k2", "abs"] = ...,
    kl_weighted: bool = ...,
    kl_in: Literal["loss", "reward"] = ...,
    aggregate: Literal[
        "token-mean",
        "token-sum",
        "seq-mean-token-mean",
        "seq-mean-token-sum",
        "seq-mean-token-sum-norm",
    ] = ...,
    over: Literal["micro-batch", "update", "generation"] = ...,
    norm_length: int | None = ...,
    empty_rows: Literal["skip", "count"] = ...,
    action: Literal["token", "completion"] = ...,
    generations: int = ...,
    iterations: int = ...,
    mini_batches: int = ...,
    accumulation: int = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> GrpoStep: ...


@overload
def contract(
    name: Literal["metric-reduction"],
    *,
    unit: Literal["token", "row-mean", "row-sum"] = ...,
    ddof: int = ...,
    one: Literal["nan", "zero", "refuse"] = ...,
    unscored: Literal["avoid", "skip", "zero"] = ...,
    ev_epsilon: float = ...,
    empty_mask: Literal["zero", "nan", "refuse", "avoid"] = ...,
    holes: bool = ...,
    masked_values: Literal["finite", "any"] = ...,
    rows: Literal["independent", "batch"] = ...,
    deterministic: bool = ...,
) -> MetricReduction: ...


@overload
def contract(name: str) -> Contract: ...


@brief
def contract(name: str, **options: object) -> Contract:
    """The contract of a name, with options: `contract("policy-loss", clip_low=0.2)`."""
    return named(name)(**options)


def named(name: str) -> type[Contract]:
    """The class of a contract."""
    if name not in BY_ID:
        raise UsageError(unknown("contract", name, list(BY_ID)))
    return BY_ID[name]
