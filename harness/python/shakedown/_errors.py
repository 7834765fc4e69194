"""What this package raises."""


class Broken(AssertionError):
    """An invariant does not hold. The message is the text of the report."""

    def __init__(self, report):
        super().__init__("\n" + report.text.rstrip("\n"))
        self.report = report


class UsageError(ValueError):
    """Something was asked for that cannot be had: a name that is not known, a value out of range,
    a function that cannot be called, a check that checked nothing."""


class EngineError(RuntimeError):
    """The command is missing, of another version, or dead: with its last words."""


UsageError.__module__ = EngineError.__module__ = Broken.__module__ = "shakedown"
