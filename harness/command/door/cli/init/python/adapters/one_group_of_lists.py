@DEF@ @NAME@(@OURS@):
    """`@CONTRACT@`: your function is taken to want the rewards of one group."""
    advantages = [0.0] * len(rewards)
    for group in set(groups):
        rows = [row for row, other in enumerate(groups) if other == group]
        of_group = [rewards[row] for row in rows]
        for row, advantage in zip(rows, @CALL@):
            advantages[row] = advantage
    return advantages
