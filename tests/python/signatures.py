"""Right reward functions in the signatures of libraries, and one that asks for what none gives."""

import re


def extracted(text):
    return re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)[-1:]


def score(text, gold):
    answers = [answer.strip() for answer in extracted(text)]
    return 1.0 if gold.strip() and answers == [gold] else 0.0


def plain(prompts, completions, answer, **columns):
    assert len(prompts) == len(completions) == len(columns["completion_ids"])
    return [score(text, gold) for text, gold in zip(completions, answer)]


def own_column(completions, solution_of_the_book):
    return [score(text, gold) for text, gold in zip(completions, solution_of_the_book)]


def chat(prompts, completions, ground_truth, **columns):
    assert all(messages[-1]["role"] == "user" for messages in prompts)
    return [
        score(messages[0]["content"], gold) for messages, gold in zip(completions, ground_truth)
    ]


def needs_a_difficulty(completions, answer, difficulty):
    return [score(text, gold) for text, gold in zip(completions, answer)]


def keeps_its_defaults(completions, reference_answer, max_len=1024, tokenizer=None):
    assert max_len == 1024
    return [score(text, gold) for text, gold in zip(completions, reference_answer)]


async def awaited(completions, answer, **columns):
    return [score(text, gold) for text, gold in zip(completions, answer)]


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": score(solution_str, ground_truth), "acc": True}


def misspelt(data_source, solution_str, groud_truth):
    return 0.0
