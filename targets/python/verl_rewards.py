"""The scores of an installed verl, in its own signature, and the extractors that they are made of.

Nothing is copied from the library; `verl/__init__.py`, which starts a cluster's client, is not run.
What is ours: the dictionary that one of them wants for the gold answer, and lists for rows.
"""

from library import stand_in, without_init

stand_in("ray")
without_init("verl", "verl.utils", "verl.utils.reward_score")

from verl.utils.reward_score import gsm8k, math_dapo, math_reward, search_r1_like_qa_em

gsm8k_score = gsm8k.compute_score
math_score = math_reward.compute_score
dapo_score = math_dapo.compute_score


def dapo_strict_score(solution_str, ground_truth):
    return math_dapo.compute_score(solution_str, ground_truth, strict_box_verify=True)


def search_score(solution_str, ground_truth):
    return search_r1_like_qa_em.compute_score(solution_str, {"target": ground_truth})


def boxed(texts):
    """Ours: what `compute_score` does with the last box, without the comparison."""
    found = [math_reward.last_boxed_only_string(text) for text in texts]
    return [None if box is None else math_reward.remove_boxed(box) for box in found]


def tagged(texts):
    return [search_r1_like_qa_em.extract_solution(text) for text in texts]
