// Both kernels with their shell.
-f common.f
-f fragmenter.f
-f gatherer.f
-f shell.f
shell/hotline_fragmenter_kernel.sv
shell/hotline_gatherer_kernel.sv
shell/hotline_fragmenter_top.v
shell/hotline_gatherer_top.v
