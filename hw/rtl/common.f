// Blocks that both kernels use.
hotline_pkg.sv
