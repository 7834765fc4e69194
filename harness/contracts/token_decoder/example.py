PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
OTHERS = [byte for byte in range(0x100) if byte not in PRINTED]
BYTES = {chr(byte): byte for byte in PRINTED}
BYTES |= {chr(0x100 + place): byte for place, byte in enumerate(OTHERS)}


def decode(tokens, vocabulary, specials, skip_special):
    texts = []
    for row in tokens.tolist():
        data = b""
        for token in row:
            if skip_special and token in specials:
                continue
            if token in specials:
                data += vocabulary[token].encode()
            else:
                data += bytes(BYTES[letter] for letter in vocabulary[token])
        texts.append(data.decode(errors="replace"))
    return texts
