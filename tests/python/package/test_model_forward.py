"""`model-forward` on models of transformers: right ones pass, what is wrong has its name."""

import functools

import pytest

import shakedown

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

VOCABULARY = 8


@functools.cache
def llama():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    config = transformers.LlamaConfig(vocab_size=32, num_attention_heads=2, **sizes)
    return transformers.LlamaForCausalLM(config).eval()


@functools.cache
def gpt2():
    torch.manual_seed(0)
    sizes = {"n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=32, **sizes)).eval()


def report_of(function, **options):
    contract = shakedown.ModelForward(vocabulary=VOCABULARY, **options)
    return contract.settings(cases=16).report(torch.no_grad()(function))


def broken(report):
    return {finding["invariant"] for finding in report.json["components"][0]["findings"]}


@pytest.mark.parametrize("place", ["cpu/f32", "cpu/bf16"])
def test_a_model_with_rotary_positions_holds(place):
    model = llama().to(torch.bfloat16) if place == "cpu/bf16" else llama().float()

    def forward(input_ids, attention_mask):
        return model(input_ids, attention_mask).logits[..., :VOCABULARY]

    contract = shakedown.ModelForward(vocabulary=VOCABULARY).settings(cases=16, places=[place])
    contract.check(torch.no_grad()(forward))


def test_learned_positions_count_the_padding():
    def forward(input_ids, attention_mask):
        return gpt2()(input_ids, attention_mask=attention_mask).logits[..., :VOCABULARY]

    report = report_of(forward)
    assert "left-padding" in broken(report), report
    assert "positions-count-the-padding" in str(report)


def test_learned_positions_that_are_given_hold():
    def forward(input_ids, attention_mask, position_ids):
        inputs = {"attention_mask": attention_mask, "position_ids": position_ids}
        return gpt2()(input_ids, **inputs).logits[..., :VOCABULARY]

    report = report_of(forward, positions="given")
    assert report, report


def test_packed_rows_see_each_other_beside_an_attention_mask():
    """transformers #46634: the mask of packed rows is made without an attention mask alone."""

    def forward(input_ids, attention_mask, position_ids, mask):
        inputs = {"attention_mask": attention_mask if mask else None, "use_cache": False}
        logits = llama().float()(input_ids, position_ids=position_ids, **inputs).logits
        return logits[..., :VOCABULARY]

    packed = {"positions": "given", "packed": True, "padding": "none"}
    assert report_of(functools.partial(forward, mask=False), **packed)
    report = report_of(functools.partial(forward, mask=True), **packed)
    assert broken(report) == {"packed-alone"}, report


def test_a_cache_without_the_padding_is_found():
    def forward(input_ids, attention_mask, position_ids):
        model, cache, cached = llama().float(), transformers.DynamicCache(), []
        logits = model(input_ids, attention_mask, position_ids).logits[..., :VOCABULARY]
        for column in range(input_ids.shape[1]):
            at = [column]
            step = model(input_ids[:, at], None, position_ids[:, at], past_key_values=cache)
            cached.append(step.logits[..., :VOCABULARY])
        return {"logits": logits, "cached_logits": torch.cat(cached, dim=1)}

    report = report_of(forward, positions="given")
    assert "cache" in broken(report), report


def test_training_mode_is_not_deterministic():
    def forward(input_ids, attention_mask):
        logits = gpt2().train()(input_ids, attention_mask=attention_mask).logits
        gpt2().eval()
        return logits[..., :VOCABULARY]

    assert "deterministic" in broken(report_of(forward))
