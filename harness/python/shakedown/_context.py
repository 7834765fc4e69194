"""Where a check runs. The plugin of pytest sets it, in each test; the check reads it."""


class Context:
    """What a check takes from where it runs."""

    folder = None  # holds `.shakedown` and `corpora`; None: the working folder
    corpora = "corpora"
    overrides: dict = {}  # settings that come before those in the code
    defaults: dict = {}  # settings that come after
    name = None  # of the test
    replay = staticmethod(lambda: "call `check` again with `examples`")  # `{file}` is the case
    case = None  # a case file: this case and no other
    fuzz = None  # seconds to search for, in place of a number of cases
    passes_on = ()  # exceptions that end a check, besides those of Python itself
    is_debugged = False  # a debugger is in a call: no limit applies
    tell = staticmethod(lambda report: None)  # what is done with every report


here = Context()
