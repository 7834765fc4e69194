"""A model that has to stay, with the puppet's logits: `puppet.around`."""

import copy

import by_hand
import by_hand_dpo
import by_hand_sft
import definition
import pytest
import torch
from definition import EOS, PAD, is_passed, is_right, pairs_case, sft_case
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

from shakedown import UsageError
from shakedown.trainers.puppet import Strayed
from shakedown.trainers.puppets import GrpoPuppet, PreferencePuppet, RewardModelPuppet, SftPuppet

CUT = {"epochs": 2, "mini_batches": 2, "accumulation": 2}
TINY = {
    "vocab_size": 32, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 2, "pad_token_id": PAD,
}  # fmt: skip


def llama(**others):
    return LlamaForCausalLM(LlamaConfig(**{**TINY, **others}))


def test_fine_tuning_of_a_llama():
    case = sft_case(0)
    puppet = SftPuppet(*case, eos=EOS, pad=PAD, **CUT)
    trainer = by_hand_sft.Trainer(puppet)
    trainer.model = model = puppet.around(llama(tie_word_embeddings=True))
    trainer.train()
    outputs = puppet.outputs()
    assert is_right(outputs, definition.sft(case, outputs["micro_batches"]))
    assert is_passed(outputs, 8, 2)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("is_copied", [False, True], ids=["the puppet's reference", "a copy"])
def test_preferences_of_a_llama(is_copied):
    case = pairs_case(0)
    puppet = PreferencePuppet(*case, eos=EOS, pad=PAD, **CUT)
    trainer = by_hand_dpo.Trainer(puppet)
    trainer.model = puppet.around(llama())
    if is_copied:
        trainer.reference = copy.deepcopy(trainer.model).eval()
    trainer.train()
    outputs = puppet.outputs()
    assert not outputs["ref_training"]
    assert is_right(outputs, definition.preference(case, outputs["micro_batches"]))


def test_a_llama_samples_the_completions_of_the_case():
    tokens = torch.tensor([[[3, 1], [4, 1]], [[3, 4], [4, 1]]])
    torch.manual_seed(0)
    case = tokens, torch.rand(2, 2, 1), torch.randn(1, 2, 2, 2, 6)
    outputs = []
    for is_around in (False, True):
        puppet = GrpoPuppet(*case, eos=[1], pad=0)
        model = puppet.around(llama()) if is_around else puppet.model
        trainer = by_hand.Trainer(puppet)
        trainer.model = model
        torch.manual_seed(0)
        for prompts in puppet.batches:
            trainer.step(prompts)
        outputs.append(puppet.outputs())
    torch.testing.assert_close(*outputs)
    assert outputs[0]["gradient"].any() and outputs[0]["scored"].all()


class Adapted(nn.Linear):
    """An adapter, as peft's layers show themselves."""

    disable_adapters = False


def test_without_its_adapters_the_model_is_the_reference():
    puppet = PreferencePuppet(*pairs_case(0), eos=EOS, pad=PAD, **CUT)
    base = llama()
    base.model.layers[0].self_attn.q_proj = Adapted(8, 8, bias=False)
    model = puppet.around(base)
    ids = torch.tensor([[*puppet.prompts[0], 2]])
    assert torch.equal(model(ids).logits, puppet.model(ids).logits)
    base.model.layers[0].self_attn.q_proj.disable_adapters = True
    assert torch.equal(model(ids).logits, puppet.reference(ids).logits)
    assert not puppet._ref_training
    copy.deepcopy(base).train()(ids)
    assert puppet._ref_training
    assert not torch.equal(puppet.model(ids).logits, puppet.reference(ids).logits)


def test_preferences_of_a_llama_with_lora():
    peft = pytest.importorskip("peft")
    case = pairs_case(0)
    puppet = PreferencePuppet(*case, eos=EOS, pad=PAD, **CUT)
    config = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=2)
    model = puppet.around(peft.get_peft_model(llama(), config))

    def reference(**inputs):
        with model.disable_adapter():
            return model(**inputs)

    trainer = by_hand_dpo.Trainer(puppet)
    trainer.model, trainer.reference = model, reference
    trainer.train()
    outputs = puppet.outputs()
    assert is_right(outputs, definition.preference(case, outputs["micro_batches"]))


def test_a_case_of_another_size_is_loaded():
    puppet = SftPuppet(*sft_case(0), eos=EOS, pad=PAD, **CUT)
    model = puppet.around(llama())
    puppet.load(*sft_case(1, size=9))
    ids = torch.tensor([[*puppet.prompts[0], 2]])
    assert torch.equal(model(ids).logits, puppet.model(ids).logits)
    assert model(ids).logits.shape[-1] == 9


def test_what_cannot_be_hooked_is_refused():
    puppet = SftPuppet(*sft_case(0), eos=EOS, pad=PAD, **CUT)
    with pytest.raises(UsageError, match=r"Linear has no backbone with a head behind it, expected"):
        puppet.around(nn.Linear(2, 2))
    with pytest.raises(UsageError, match=r"LlamaForSequenceClassification has no backbone with a"):
        puppet.around(LlamaForSequenceClassification(LlamaConfig(**TINY)))
    with pytest.raises(UsageError, match=r"the model has 4 ids, expected 7 or more$"):
        puppet.around(llama(vocab_size=4))
    with pytest.raises(UsageError, match=r"was called without `input_ids`$"):
        puppet.around(llama())(inputs_embeds=torch.zeros(1, 1, 8))
    with pytest.raises(Strayed, match=r"^a second model was asked, and the case has no reference"):
        copy.deepcopy(puppet.around(llama()))(torch.tensor([[2]]))
    pairs = torch.tensor([[[3, 1], [1, 0]]])
    scorer = RewardModelPuppet(pairs, torch.zeros(1, 1, 2, 2), eos=1, pad=0)
    with pytest.raises(UsageError, match=r"^`puppet.around` has logits, and the case has scores$"):
        scorer.around(llama())
