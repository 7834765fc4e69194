import re

TAGS = ["<reasoning>", "</reasoning>", "<answer>", "</answer>"]
FORM = re.compile(r"<reasoning>\n.*\n</reasoning>\n<answer>\n.*\n</answer>", re.DOTALL)
ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


def correctness(completion, answer):
    found = ANSWER.findall(completion)
    given = found[-1].strip() if found else ""
    return 1.0 if given and given == answer.strip() else 0.0


def form(completion):
    once = all(completion.count(tag) == 1 for tag in TAGS)
    return 1.0 if once and FORM.fullmatch(completion.strip()) else 0.0


def share_of_tags(completion):
    placed = [tag for tag in TAGS if completion.count(tag) == 1]
    return len(placed) / len(TAGS)


def reward(prompts, completions, answers, judges):
    rewards = []
    for completion, answer in zip(completions, answers):
        if judges == "correctness":
            score = correctness(completion, answer)
        elif judges == "format":
            score = form(completion)
        else:
            score = share_of_tags(completion)
        rewards.append(score)
    return rewards
