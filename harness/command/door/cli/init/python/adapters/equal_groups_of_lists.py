@DEF@ @NAME@(@OURS@):
    """`@CONTRACT@`: with `layout: contiguous` all groups have the size of the first."""
    group_size = groups.count(groups[0])
    return @CALL@
