"""A Kernel -> files that need nothing of stax: an object, a C header, a shared library and a loader of ctypes alone.

Begin with `export.py`. `wrapper.py` prints the exported functions, which check their arguments as a call from Python
does; `header.py` declares them; `link.py` finds a linker; `loader.py` is the text of the Python side.
"""
