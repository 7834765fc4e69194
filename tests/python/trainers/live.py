"""Tiny trainers that really train: a Llama of a few thousand parameters, built here."""

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

WORDS = ["<pad>", "<eos>", *(f"w{i}" for i in range(14))]
QUIET = {
    "use_cpu": True, "bf16": False, "report_to": [], "disable_tqdm": True, "save_strategy": "no",
    "logging_strategy": "steps", "logging_steps": 1, "seed": 3, "learning_rate": 1e-2,
    "dataloader_pin_memory": False,
}  # fmt: skip


def tokenizer():
    core = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="w0"))
    core.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<eos>")


def model(folder, dropout=0.0):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=16, intermediate_size=32, attention_dropout=dropout,
        num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    made = LlamaForCausalLM(config)
    made.save_pretrained(folder)  # where a reference model is loaded from
    return LlamaForCausalLM.from_pretrained(folder)


def variety(completions, **_):
    """How many different words a completion has."""
    return [len({*text.split()}) / 4 for text in completions]


def brevity(completions, **_):
    """Does not score every completion."""
    lengths = [len(text.split()) for text in completions]
    return [None if n % 5 == 4 else -n / 10 for n in lengths]


def none(completions, **_):
    """All completions are alike."""
    return [0.0] * len(completions)


class Losses(TrainerCallback):
    """What is logged, but for times."""

    def __init__(self):
        self.rows = []

    def on_log(self, args, state, control, logs=None, **_):
        timed = ("time", "runtime", "second", "flos")
        self.rows.append({n: it for n, it in logs.items() if not any(t in n for t in timed)})


def grpo(folder, trainer_class=GRPOTrainer, rewards=(variety,), steps=6, dropout=0.0, **settings):
    config = GRPOConfig(
        output_dir=str(folder),
        **{
            **QUIET, "max_steps": steps, "per_device_train_batch_size": 8, "num_generations": 4,
            "max_completion_length": 8, "temperature": 0.8, **settings,
        },
    )  # fmt: skip
    prompts = [{"prompt": f"w{i} w{(3 * i + 1) % 14} w{i % 5}"} for i in range(14)]
    return trainer_class(
        model=model(f"{folder}/model", dropout),
        args=config,
        reward_funcs=list(rewards),
        train_dataset=Dataset.from_list(prompts),
        processing_class=tokenizer(),
    )


def sft(folder, trainer_class=SFTTrainer, steps=6, dropout=0.0, **settings):
    config = SFTConfig(
        output_dir=str(folder),
        **{**QUIET, "max_steps": steps, "per_device_train_batch_size": 4, **settings},
    )
    rows = [
        {"prompt": f"w{i} w{i % 3}", "completion": " w1" * (i % 4 + 1) + f" w{i}"}
        for i in range(14)
    ]
    return trainer_class(
        model=model(f"{folder}/model", dropout),
        args=config,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer(),
    )


def dpo(folder, trainer_class=DPOTrainer, steps=6, dropout=0.0, **settings):
    config = DPOConfig(
        output_dir=str(folder),
        **{**QUIET, "max_steps": steps, "per_device_train_batch_size": 4, **settings},
    )
    rows = [
        {
            "prompt": f"w{i} w{i % 3}",
            "chosen": f" w{i}" * (i % 3 + 1),
            "rejected": " w1" * (i % 4 + 2),
        }
        for i in range(14)
    ]
    return trainer_class(
        model=model(f"{folder}/model", dropout),
        args=config,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer(),
    )
