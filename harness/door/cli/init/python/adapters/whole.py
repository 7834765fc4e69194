from @MODULE@ import @FUNCTION@


def adapted_@FUNCTION@(@OURS@):
    """`@CONTRACT@`: your function's names on the left, the contract's on the right."""
    return @FUNCTION@(@ARGUMENTS@)
