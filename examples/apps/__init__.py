"""The applications of `peers/` in stax, with the benchmarks that set them beside other systems."""
