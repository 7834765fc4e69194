@DEF@ @NAME@(@OURS@):
    """`@CONTRACT@`: your function takes one row, the contract gives all of them."""
    return [
        @CALL@
        for row in range(len(@FIRST@))
    ]
