"""Functions that stand between this repository and the contracts of shakedown.

An adapter is needed only where names or shapes differ. shakedown calls a function with keyword
arguments: the inputs and the options of the contract that its parameters name (`shakedown list
CONTRACT` lists both), all of them with `**kwargs`. It returns the output, or a dict of outputs by
name. Keep adapters free of arithmetic: what they compute is not your code.
"""

@ADAPTER@
