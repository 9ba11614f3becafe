// The fragmenter core.
-f common.f
-f eal.f
