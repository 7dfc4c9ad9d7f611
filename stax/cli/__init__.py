"""The command line: `stax demo`, `doctor`, `run`, `explain`, `schedule`, `roofline`, `bench`.

In come words of a shell; out go text and files. Begin reading at `app.py`; each command has a file of its own. What a
user did wrong is an error of `stax.errors` and exit code 2, never a traceback.
"""
