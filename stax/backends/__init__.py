"""Loops as machine code: a folder a backend.

In: a `loops` Program and the facts that one version of it takes for granted. Out: an `artifact.Artifact`.
"""
