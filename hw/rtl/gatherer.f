// The gatherer core.
-f common.f
