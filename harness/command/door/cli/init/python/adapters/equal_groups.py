@DEF@ @NAME@(@OURS@):
    """`@CONTRACT@`: with `layout: contiguous` all groups have the size of the first."""
    group_size = int((groups == groups[0]).sum())
    return @CALL@
