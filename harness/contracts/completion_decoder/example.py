import re


def decode_completions(completions, artefacts, think, think_tags):
    opening, closing = map(re.escape, think_tags)
    block = re.compile(rf"{opening}.*?(?:{closing}|\Z)", re.DOTALL)
    texts = []
    for text in completions:
        while found := [artefact for artefact in artefacts if artefact in text]:
            text = text.replace(found[0], "")
        if think == "strip-closed":
            if think_tags[0] not in text:  # the block began in the prompt
                text = text.rpartition(think_tags[1])[2]
            text = block.sub("", text)
        texts.append(text.strip())
    return texts
