"""Questions about all points of a nest at once, answered by isl: the only room that imports it, when it is asked.

Sums and nests come in; ints and names go out, never an object of isl. Begin with `clash.py`.
"""
