"""The components of this repository, checked by shakedown: pytest @FILE@

A test gets the inputs and options of its contract that its parameters name, and returns the outputs;
its other parameters are fixtures. Options say which convention a function follows, and those that
are not named have the contract's defaults: `shakedown list CONTRACT` says all of them.
"""

@IMPORTS@


@TESTS@
