"""Programs to read and run: `python -m examples.blur`, or `stax explain examples/blur.py`."""
