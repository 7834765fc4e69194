"""`python -m shakedown`: the command."""

import os
import subprocess
import sys

from ._command import find
from ._errors import EngineError

try:
    command = [find(), *sys.argv[1:]]
except EngineError as error:
    sys.exit(f"error: {error}")
if os.name == "nt":
    sys.exit(subprocess.call(command))
os.execv(command[0], command)
