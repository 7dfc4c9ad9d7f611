"""What a kernel does, measured: in, a Kernel and arrays; out, tables of facts. Begin reading in `profile`."""
