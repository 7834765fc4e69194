@DEF@ @NAME@(@OURS@):
    """`@CONTRACT@`: with `layout: contiguous` all groups have the size of the first."""
    size = groups.count(groups[0])
    of_group = [rewards[row : row + size] for row in range(0, len(rewards), size)]
    return [advantage for group in @CALL@ for advantage in group]
