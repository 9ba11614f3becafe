// The EAL.
-f common.f
