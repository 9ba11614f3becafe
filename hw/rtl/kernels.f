// Both kernels with their shell.
-f common.f
-f fragmenter.f
-f gatherer.f
