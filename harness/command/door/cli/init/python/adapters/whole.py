@DEF@ @NAME@(@OURS@):
    return @CALL@
