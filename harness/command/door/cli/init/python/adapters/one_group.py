@DEF@ @NAME@(@OURS@):
    """`@CONTRACT@`: your function is taken to want the rewards of one group."""
    advantages = 0 * rewards
    for group in set(groups.tolist()):
        rows = groups == group
        of_group = rewards[rows]
        advantages[rows] = @CALL@
    return advantages
