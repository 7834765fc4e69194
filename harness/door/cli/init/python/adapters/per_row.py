from @MODULE@ import @FUNCTION@


def adapted_@FUNCTION@(@OURS@):
    """`@CONTRACT@`: your function takes one row, the contract gives all of them."""
    return [@FUNCTION@(@ARGUMENTS@) for row in range(len(@FIRST@))]
