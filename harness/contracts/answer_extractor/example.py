import re


def extract_answers(texts, tag):
    pattern = re.compile(f"<{tag}>(.*?)</{tag}>", re.DOTALL)
    answers = []
    for text in texts:
        found = pattern.findall(text)
        answers.append(found[-1].strip() if found else None)
    return answers
