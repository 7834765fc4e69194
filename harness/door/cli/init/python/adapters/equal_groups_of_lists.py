from @MODULE@ import @FUNCTION@


def adapted_@FUNCTION@(@OURS@):
    """`@CONTRACT@`: with `layout: contiguous` all groups have the size of the first."""
    group_size = groups.count(groups[0])
    return @FUNCTION@(@ARGUMENTS@)
